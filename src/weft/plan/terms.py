"""The terms of a block: which of its expressions are dimensions, and what its aggregates become.

Each distinct call is lowered once, each statistic and dimension is kept once, under its canonical
text. Types come from the stream's columns where they say enough, else from Spark.
"""

from __future__ import annotations

from sqlglot import exp

from weft.logical.aggregates import (
    Aggregates,
    Argument,
    Call,
    CannotShare,
    Condition,
    Lowered,
    PythonAggregate,
    TypeOf,
    expand,
)
from weft.logical.aggregates.calls import innermost, read
from weft.logical.aggregates.kinds import is_portable, refuse_unstored
from weft.logical.canonical import canonical, text_of
from weft.logical.statistics import Dimension, Statistic
from weft.logical.total import is_total
from weft.logical.tried import NotTried, Tried, tried
from weft.plan.blocks import is_aggregate_call
from weft.plan.recompute import PlannedSource
from weft.plan.resolve import END, START, TIME, Block

HELPERS = {TIME: "timestamp", START: "timestamp", END: "timestamp",
           "_weft_tick": "bigint", "_weft_ord": "bigint"}  # fmt: skip
OF_ONE_ROW = ("first", "first_value", "any_value")  # Spark evaluates their argument once


class Types:
    """Types of expressions over the stream's columns, each asked of Spark at most once."""

    def __init__(self, planned: PlannedSource, type_of: TypeOf, aggregates: Aggregates) -> None:
        self._ask, self._aggregates = type_of, aggregates
        self._known = {c.name.lower(): c.type.lower() for c in planned.source.relation.columns}
        self._known = {n: t for n, t in self._known.items() if is_portable(t)} | HELPERS
        self._asked: dict[str, str] = {}

    def of(self, node: exp.Expression) -> str:
        inner = node.unnest()
        if isinstance(inner, exp.Column) and inner.name.lower() in self._known:
            return self._known[inner.name.lower()]
        if isinstance(inner, exp.Boolean):
            return "boolean"
        if isinstance(inner, exp.Literal) and inner.is_string:
            return "string"
        edges = inner.copy().transform(_as_time)
        return self.of_text(expand(edges, self._aggregates).sql(dialect="spark"))

    def of_text(self, text: str) -> str:
        if (known := self._known.get(text.strip("`").lower())) is not None:
            return known
        if text.isdigit() and len(text) < 10:
            return "int"
        if text not in self._asked:
            self._asked[text] = self._ask(text)
        return self._asked[text]


def _as_time(node: exp.Expression) -> exp.Expression:
    """A window's edges are no columns of the stream, but have the type of its time."""
    is_edge = isinstance(node, exp.Column) and node.name in (START, END)
    return exp.column(TIME, quoted=True) if is_edge else node


class Terms:
    """Collects dimensions and statistics while the finish is built.

    An expression that may raise an error is folded as one that does not, and the rows where it would
    have are counted (logical/tried.py): they are among the query's own only if the predicate keeps
    them. What cannot be split so is evaluated only on the rows that the query keeps, as CASE WHEN
    predicate THEN expression END, and keeps it from sharing.
    """

    def __init__(self, block: Block, types: Types, aggregates: Aggregates) -> None:
        self.types = types
        self.predicate = canonical(block.where) if block.where is not None else None
        self._kept_rows = _all_of(block.in_window, self.predicate)
        self.dimensions: dict[str, Dimension] = {}
        self.statistics: dict[str, Statistic] = {}
        self._aggregates = aggregates
        self._lowered: dict[str, Lowered] = {}
        self.is_total = True  # no fold raises an error, whatever the row
        self.failures: dict[str, str] = {}  # columns that count rows that fail, and what fails
        self.is_repeatable = True  # merging in another order gives the same
        self.definitions: dict[PythonAggregate, None] = {}
        self.covers_nothing = True  # NULL statistics finish to what SQL gives for no rows
        for group in block.groups:
            self._add_group(group)

    def _add_group(self, group: exp.Expression) -> None:
        form = canonical(group)
        columns = {c.name for c in form.find_all(exp.Column)}
        if not columns - {START, END}:  # the same for every row of a window
            return
        if columns & {START, END}:
            raise CannotShare("GROUP BY mixes a window's edges with columns")
        type_ = self.types.of(form)
        refuse_unstored(type_)
        kept = text_of(self._tried(group))
        self.dimensions[text_of(form)] = Dimension(kept, type_, kept)

    def _tried(self, node: exp.Expression, condition: str | None = None) -> exp.Expression:
        """The expression as it is folded; where it would raise, under a condition, is counted."""
        try:
            found = tried(node, self.types.of_text)
        except NotTried:
            return self._guarded(canonical(node))
        if found.fails is not None:
            one, text = failure(found, node, condition)
            self.statistics[one.key] = one
            self.failures[one.column] = text
        return found.value

    def _guarded(self, form: exp.Expression) -> exp.Expression:
        if is_total(form, self.types.of_text):
            return form
        self.is_total = False
        if self._kept_rows is None:
            return form
        return canonical(exp.Case().when(self._kept_rows.copy(), form))

    def dimension(self, node: exp.Expression) -> Dimension | None:
        """The dimension that an expression is, if it is one."""
        if not self.dimensions or node.find(exp.Column) is None:
            return None
        return self.dimensions.get(text_of(canonical(node)))

    def lowered(self, node: exp.Expression) -> Lowered | None:
        """What an aggregate call becomes; None if the node is no aggregate call."""
        if not is_call(node):
            return None
        text = node.sql(dialect="spark")
        if text not in self._lowered:
            found = self._aggregates.lower(self._call(node))
            for statistic in found.statistics:
                self.statistics[statistic.key] = statistic
            self.is_total = self.is_total and found.is_total
            self.covers_nothing = self.covers_nothing and found.covers_nothing
            self.is_repeatable = self.is_repeatable and found.is_repeatable
            self.definitions |= dict.fromkeys(found.definitions)
            self._lowered[text] = found
        return self._lowered[text]

    def _call(self, node: exp.Expression) -> Call:
        written = read(node)
        condition = written.condition
        if condition is not None:
            _refuse_edges(condition)
            text = text_of(self._guarded(canonical(condition)))
        test = None if condition is None else Condition(text, text)
        alone = sum(a.find(exp.Column) is not None for a in written.arguments) == 1
        alone = alone and written.name not in OF_ONE_ROW
        arguments = tuple(self._argument(a, test, alone) for a in written.arguments)
        return Call(
            written.name, arguments, self.types.of_text, written.is_distinct, written.ignores_nulls,
            test,
        )  # fmt: skip

    def _argument(self, node: exp.Expression, test: Condition | None, alone: bool) -> Argument:
        """An argument; not alone, it may be evaluated on some rows only."""
        if isinstance(node, exp.Star):
            return Argument("*", "*", "bigint", node)
        if any(is_call(n) for n in node.walk()):
            raise CannotShare("an aggregate inside an aggregate")
        if any(isinstance(n, exp.Order | exp.Limit) for n in node.walk()):
            raise CannotShare("ORDER BY inside an aggregate")
        _refuse_edges(node)
        form = canonical(node)
        kept = self._tried(node, test and test.sql) if alone else self._guarded(form)
        text = text_of(kept)
        return Argument(text, text, self.types.of(form), kept)


def failure(found: Tried, node: exp.Expression, condition: str | None) -> tuple[Statistic, str]:
    """The statistic that counts the rows on which an expression fails, and what to say of them."""
    test = text_of(found.fails)
    test = test if condition is None else f"({condition}) AND ({test})"
    one = Statistic(
        f"count(*) filter({test})", "bigint", f"count(*) FILTER (WHERE {test})", "sum({})",
        "CAST(sum({}) AS BIGINT)",
    )  # fmt: skip
    shown = text_of(node).replace("`", "")
    return one, f"{shown}: {' or '.join(found.kinds)}"


def _all_of(*conditions: exp.Expression | None) -> exp.Expression | None:
    found = [c for c in conditions if c is not None]
    return canonical(exp.and_(*found)) if found else None


def _refuse_edges(node: exp.Expression) -> None:
    if any(c.name in (START, END) for c in node.find_all(exp.Column)):
        raise CannotShare("an aggregate of the window's edges")


def is_call(node: exp.Expression) -> bool:
    """An aggregate call with its FILTER and IGNORE NULLS."""
    return is_aggregate_call(innermost(node))
