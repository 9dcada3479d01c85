"""Bind a select: give every name its meaning, and every stream its window.

One walk over a copy of the tree. Each table that is not a CTE becomes a placeholder under the same
alias, so that the rest of the query reads on unchanged; columns and functions are checked on the
way, inside out, with their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from sqlglot import exp

from weft.errors import SyntaxProblem, UnknownName, Unsupported, did_you_mean
from weft.logical.query import BoundQuery, Source
from weft.logical.relations import Emit, Relation
from weft.logical.windows import WholeStream
from weft.sql.attach import attach_between, attach_window, refuse_window
from weft.sql.blocks import aliased, aliases, made_by_windows, merged_names, nested_joins
from weft.sql.columns import check_column
from weft.sql.functions import check_function, check_reproducible, no_other
from weft.sql.outputs import output_of, refuse_duplicates
from weft.sql.scope import OPEN, Frame, Output, Slot, Visible, place_of, position
from weft.sql.spark_windows import absorb_windows
from weft.sql.statements import Select

CTEs = Mapping[str, Output]
PLACEHOLDER = "weft_s"
BEFORE_ALIASES = ("where", "distinct", "limit", "offset")
AFTER_ALIASES = ("having", "qualify", "windows", "order", "sort", "cluster", "distribute")


class Names(Protocol):
    """What is registered. Lookup ignores case, as in Spark."""

    def find(self, name: str) -> Relation | None: ...

    def all(self) -> Iterable[str]: ...


def bind(
    select: Select,
    names: Names,
    emit: Emit | None = None,
    *,
    is_standing: bool = True,
    functions: Iterable[str] = (),
    is_other: Callable[[str], bool] = no_other,
) -> BoundQuery:
    """The query with its names known. A standing query must also be reproducible, and have one
    column of each name; a pull may use the wall clock. `functions`: known besides Spark's own;
    `is_other` is asked about what is not known so."""
    tree = select.tree.copy()
    known = frozenset(f.lower() for f in functions)
    binder = _Binder(select, names, is_standing, known, is_other)
    output = binder.query(tree, {}, None, is_top=True)
    if select.between is not None:
        attach_between(select.between, binder.top, tree)
    if is_standing:
        refuse_duplicates(output)
    sources = tuple(
        Source(s.placeholder, s.relation, s.window or WholeStream()) for s in binder.slots
    )
    return BoundQuery(select.text, tree, sources, emit)


class _Binder:
    """The walk's memory: the sources met so far, and those of the outermost FROM."""

    def __init__(
        self,
        select: Select,
        names: Names,
        is_standing: bool,
        functions: frozenset[str],
        is_other: Callable[[str], bool],
    ) -> None:
        self.select, self.names = select, names
        self.is_standing, self.functions, self.is_other = is_standing, functions, is_other
        self.slots: list[Slot] = []
        self.top: list[Slot] = []

    # queries

    def query(
        self, node: exp.Expression, ctes: CTEs, outer: Frame | None, is_top: bool = False
    ) -> Output:
        ctes = self.with_clause(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self.block(node, ctes, outer, is_top)
        if isinstance(node, exp.SetOperation):
            output = self.query(node.this, ctes, outer, is_top)
            self.query(node.expression, ctes, outer, is_top)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            output = self.query(node.this, ctes, outer, is_top)
        else:
            self.walk(node, Frame(outer, [Visible("", OPEN)]), ctes)
            return OPEN
        self.order_of(node, output, ctes, outer)
        return output

    def order_of(
        self, node: exp.Expression, output: Output, ctes: CTEs, outer: Frame | None
    ) -> None:
        """ORDER BY and LIMIT after a set operation or parentheses see the answer's columns."""
        frame = Frame(outer, [Visible("", output)])
        for key in ("order", "limit", "offset", "sort", "cluster", "distribute"):
            self.walk(node.args.get(key), frame, ctes)

    def with_clause(self, node: exp.Expression, ctes: CTEs, outer: Frame | None) -> CTEs:
        """CTEs see those before them, and shadow every other name, registered or not."""
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        known = dict(ctes)
        for cte in clause.expressions:
            name, columns = cte.alias.lower(), cte.args["alias"].columns
            _refuse_placeholder_name(cte)
            if clause.args.get("recursive"):
                known[name] = OPEN.renamed(columns)
            known[name] = self.query(cte.this, known, outer).renamed(columns)
        return known

    def block(self, node: exp.Select, ctes: CTEs, outer: Frame | None, is_top: bool) -> Output:
        frame = Frame(outer)
        first = len(self.slots)
        if node.args.get("from_") is not None:
            self.source(node.args["from_"].this, frame, ctes)
        self.joins(node, frame, ctes)
        absorb_windows(node, frame)
        if is_top:
            self.top += [s.slot for s in frame.sources if s.slot in self.slots[first:]]
        output = output_of(node, frame)
        self.check_clauses(node, frame, ctes, output)
        return output

    def check_clauses(self, node: exp.Select, frame: Frame, ctes: CTEs, output: Output) -> None:
        """Clause by clause, each with the aliases it can see: none, those before it, or all."""
        frame.aliases_to_come = {alias.lower() for alias in aliases(node.expressions)}
        for key in BEFORE_ALIASES:
            self.walk(node.args.get(key), frame, ctes)
        for join in [*(node.args.get("joins") or []), *nested_joins(node)]:
            self.walk(join.args.get("on"), frame, ctes)
        frame.aliases, frame.aliases_to_come = made_by_windows(node), set()
        for projection in node.expressions:
            self.walk(projection, frame, ctes)
            frame.aliases |= {alias.lower() for alias in aliases([projection])}
        self.walk(node.args.get("group"), frame, ctes)
        frame.aliases |= {name.lower() for name in output.names}
        for key in AFTER_ALIASES:
            self.walk(node.args.get(key), frame, ctes)

    # sources

    def joins(self, node: exp.Expression, frame: Frame, ctes: CTEs) -> None:
        for join in node.args.get("joins") or []:
            before = len(frame.sources)
            self.source(join.this, frame, ctes)
            for right in frame.sources[before:]:
                right.is_joined_out = (join.kind or "").upper() in {"SEMI", "ANTI"}
                frame.merge(merged_names(join, frame.sources[:before], right), right)
        for lateral in node.args.get("laterals") or []:
            self.source(lateral, frame, ctes)

    def source(self, node: exp.Expression, frame: Frame, ctes: CTEs) -> None:
        """Add what stands in FROM to the frame."""
        if isinstance(node, exp.Table):
            self.table(node, frame, ctes)
        elif isinstance(node, exp.Subquery):
            self.derived(node, frame, ctes)
        elif isinstance(node, exp.Lateral):
            frame.add(Visible(node.alias, aliased(node, self.lateral(node, frame, ctes))))
        else:
            self.walk(node, frame, ctes)
            frame.add(Visible(node.alias, aliased(node, OPEN)))

    def lateral(self, node: exp.Lateral, frame: Frame, ctes: CTEs) -> Output:
        if isinstance(node.this, exp.Query):
            return self.query(node.this, ctes, frame)
        self.walk(node.this, frame, ctes)
        return OPEN

    def derived(self, node: exp.Subquery, frame: Frame, ctes: CTEs) -> None:
        """A subquery in FROM, or a join in parentheses."""
        if isinstance(node.this, exp.Query):
            output = self.query(node, ctes, frame.outer)
            output = OPEN if node.args.get("pivots") else output
            frame.add(Visible(node.alias, aliased(node, output)))
        else:
            inner = frame if not node.alias else Frame(frame.outer)
            self.source(node.this, inner, ctes)
            if node.alias:
                frame.add(Visible(node.alias, aliased(node, OPEN)))
        self.joins(node, frame, ctes)

    def table(self, node: exp.Table, frame: Frame, ctes: CTEs) -> None:
        if not isinstance(node.this, exp.Identifier):  # range(10), explode(…), …
            self.walk(node.this, frame, ctes)
            frame.add(Visible(node.alias, aliased(node, OPEN)))
        elif not node.db and node.name.lower() in ctes:
            refuse_window(self.select, node)
            output = OPEN if node.args.get("pivots") else ctes[node.name.lower()]
            frame.add(Visible(node.alias_or_name, aliased(node, output)))
        else:
            frame.add(self.registered(node))
        self.walk_all(node.args.get("pivots"), Frame(frame.outer, [Visible("", OPEN)]), ctes)
        self.joins(node, frame, ctes)

    def registered(self, node: exp.Table) -> Visible:
        """Replace a registered name by a placeholder, under the same alias."""
        slot = Slot(f"{PLACEHOLDER}{len(self.slots)}", self.resolve(node), node)
        self.slots.append(slot)
        self.refuse_table_clauses(node)
        attach_window(self.select, slot)
        qualifier = node.db.lower()
        if not node.alias:
            alias = exp.TableAlias(this=node.this.copy())
            columns = node.args["alias"].columns if node.args.get("alias") else None
            alias.set("columns", columns)
            node.set("alias", alias)
        node.set("this", exp.to_identifier(slot.placeholder))
        node.set("db", None)
        node.set("catalog", None)
        is_pivoted = bool(node.args.get("pivots"))
        output = aliased(node, Output())
        return Visible(
            node.alias, OPEN if is_pivoted else output, None if is_pivoted else slot, qualifier
        )

    def resolve(self, node: exp.Table) -> Relation:
        written = ".".join(part.name for part in node.parts)
        relation = self.names.find(written)
        if relation is not None:
            return relation
        known = list(self.names.all())
        hint = did_you_mean(written, known) or did_you_mean(node.name, known)
        raise UnknownName(
            f'there is no stream, table or query "{written}"',
            detail=f"there are {', '.join(sorted(known))}" if 0 < len(known) <= 12 else None,
            hint=hint
            or f"make it first: CREATE STREAM {node.name} (…) or CREATE TABLE {node.name} (…)",
            code="WEFT_UNKNOWN_RELATION",
            **position(node),
        )

    def refuse_table_clauses(self, node: exp.Table) -> None:
        if node.args.get("version") is not None or node.args.get("when") is not None:
            raise Unsupported(
                "time travel in FROM is not supported",
                hint='use q.results(at="…") in Python',
                **position(node),
            )
        if node.args.get("sample") is not None and self.is_standing:
            raise Unsupported(
                "TABLESAMPLE cannot be used in a continuous query",
                detail="answers must be reproducible, and a sample depends on chance",
                hint="keep a fixed share instead: WHERE pmod(hash(key), 10) = 0",
                code="WEFT_NOT_REPRODUCIBLE",
                **position(node),
            )

    # expressions

    def walk_all(self, nodes: Iterable[exp.Expression] | None, frame: Frame, ctes: CTEs) -> None:
        for node in nodes or ():
            self.walk(node, frame, ctes)

    def walk(self, node: object, frame: Frame, ctes: CTEs) -> None:
        """Check columns and functions; a query inside sees this frame around its own."""
        if isinstance(node, list):
            for part in node:
                self.walk(part, frame, ctes)
        elif isinstance(node, exp.Query):
            self.query(node, ctes, frame)
        elif isinstance(node, exp.Column):
            check_column(node, frame)
        elif isinstance(node, exp.Expr):
            check_function(node, self.functions, self.is_other)
            if self.is_standing:
                check_reproducible(node)
            for child in node.iter_expressions():
                self.walk(child, frame, ctes)


def _refuse_placeholder_name(cte: exp.CTE) -> None:
    if cte.alias.lower().startswith(PLACEHOLDER):
        place = place_of(cte.args["alias"])
        raise SyntaxProblem(
            f'the name "{cte.alias}" starts with {PLACEHOLDER}',
            hint="Weft keeps those for itself; use another name",
            code="WEFT_INVALID_NAME",
            line=place.line if place else None,
            column=place.column if place else None,
        )
