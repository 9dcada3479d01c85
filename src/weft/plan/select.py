"""From a recompute plan to a selection: window, predicate, outputs; for queries without aggregates.

Law: the answer at τ is the outputs of the rows that the window holds at τ and that satisfy the
predicate, made distinct, sorted and cut as the query says. Rows, window and predicate are data, so
nothing is computed for a query until somebody reads it (PSoup §3.3: the window and the projection
are applied just in time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from weft.logical.aggregates import BUILT_IN, CannotShare, TypeOf
from weft.logical.relations import Kind
from weft.logical.windows import Landmark, LastRows, Sliding, Snapshot, WholeStream
from weft.optimizer.factors import Slot, factor, filled, slots_of
from weft.optimizer.selections import Output, SelectClass, Selection
from weft.plan.blocks import from_items, is_aggregated
from weft.plan.in_duck import RowSql
from weft.plan.names import spark_name
from weft.plan.order import _number
from weft.plan.recompute import PlannedSource, RecomputePlan
from weft.plan.recompute import Shape as PlanShape
from weft.plan.resolve import Block, Resolver
from weft.plan.share import check_clauses
from weft.plan.terms import Types

STANDING = (Sliding, LastRows, Landmark, Snapshot, WholeStream)


@dataclass(frozen=True, slots=True, eq=False)
class Selecting:
    """A query that is a selection: its class, and what is its own."""

    value: SelectClass
    selection: Selection


def is_selection(plan: RecomputePlan) -> bool:
    """Whether a query selects rows, rather than aggregating them: its reasons are told by `select`."""
    return isinstance(plan.tree, exp.Select) and not is_aggregated(plan.tree)


def select(
    plan: RecomputePlan, stream_id: int, type_of: TypeOf, names: tuple[str, ...], policy: str
) -> Selecting:
    """Decompose a plan, or raise CannotShare with the reason."""
    planned, tree = _one_block(plan)
    alias = from_items(tree)[0][0].alias_or_name
    block = Resolver(_without_stars(tree, planned, alias), planned, alias).block()
    types = Types(planned, type_of, BUILT_IN)
    value = _class(stream_id, block.where, types)
    shown = RowSql(types)
    outputs = tuple(
        Output(_name(block, i, names), shown.output(node))
        for i, (_, node) in enumerate(block.projections)
    )
    selection = Selection(
        outputs, planned.source.window, bool(tree.args.get("distinct")),
        _number(tree.args.get("limit")), _number(tree.args.get("offset")) or 0,
        tuple(shown.derived), policy,
    )  # fmt: skip
    return Selecting(value, selection)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A selection but for its predicate: what statements that differ in constants have in common."""

    stream_id: int
    selection: Selection
    resolver: Resolver
    types: Types
    slots: tuple[Slot, ...] | None = None  # its predicate, if it only compares with whole numbers

    def with_slots(self, where: exp.Expression, numbers: Sequence[str]) -> Shape:
        """The shape with the predicate of a WHERE that has these numbers, from left to right."""
        found = slots_of(self.resolver.plain(where), numbers, self.types.of_text)
        return replace(self, slots=found)

    def numbered(self, numbers: Sequence[str]) -> Selecting | None:
        """The selection with other numbers in its predicate; None: its text has to be read."""
        predicate = None if self.slots is None else filled(self.slots, numbers)
        if predicate is None:
            return None
        rows = RowSql(self.types)
        value = SelectClass(self.stream_id, predicate, rows.where(predicate), tuple(rows.derived))
        return Selecting(value, self.selection)

    def selecting(self, where: exp.Expression) -> Selecting:
        """The selection with another WHERE over the same columns."""
        return Selecting(
            _class(self.stream_id, self.resolver.plain(where), self.types), self.selection
        )


def shape_of(plan: RecomputePlan, found: Selecting, type_of: TypeOf) -> Shape:
    planned, tree = _one_block(plan)
    resolver = Resolver(tree, planned, from_items(tree)[0][0].alias_or_name)
    types = Types(planned, type_of, BUILT_IN)
    return Shape(found.value.stream_id, found.selection, resolver, types)


def _class(stream_id: int, where: exp.Expression | None, types: Types) -> SelectClass:
    rows = RowSql(types)
    predicate = factor(where, types.of_text)
    return SelectClass(stream_id, predicate, rows.where(predicate), tuple(rows.derived))


def _name(block: Block, index: int, names: tuple[str, ...]) -> str:
    if index < len(names):
        return names[index]
    name, node = block.projections[index]
    return name or spark_name(node)


def _one_block(plan: RecomputePlan) -> tuple[PlannedSource, exp.Select]:
    tree = plan.tree
    if not isinstance(tree, exp.Select):
        raise CannotShare("it is more than one SELECT block")
    if len(plan.sources) != 1 or len(from_items(tree)) != 1:
        raise CannotShare("it reads more than one source")
    planned, item = plan.sources[0], from_items(tree)[0][0]
    if not isinstance(item, exp.Table) or item.args.get("pivots") or item.args.get("sample"):
        raise CannotShare("it does not read a stream itself")
    if planned.source.relation.kind is not Kind.STREAM:
        raise CannotShare(f'"{planned.source.relation.name}" is not a stream')
    if plan.shape is not PlanShape.STANDING or not isinstance(planned.source.window, STANDING):
        raise CannotShare("it selects rows for each window, not for one that stands")
    check_clauses(tree)
    if tree.args.get("having"):
        raise CannotShare("HAVING in the query")
    return planned, tree


def _without_stars(tree: exp.Select, planned: PlannedSource, alias: str) -> exp.Select:
    """The block with `*` and `alias.*` written out."""
    shown: list[exp.Expression] = []
    for projection in tree.expressions:
        star = projection.this if isinstance(projection, exp.Column) else projection
        if not isinstance(star, exp.Star):
            shown.append(projection.copy())
            continue
        if star.args.get("replace") or star.args.get("rename"):
            raise CannotShare("* with REPLACE or RENAME")
        hidden = {node.name.lower() for node in star.args.get("except_") or ()}
        shown += [
            exp.column(name, table=alias, quoted=True)
            for name in planned.source.relation.column_names()
            if name.lower() not in hidden
        ]
    written = tree.copy()
    written.set("expressions", shown)
    return written
