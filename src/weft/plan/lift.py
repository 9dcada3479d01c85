"""Lifting: one run of a query answers every window that falls due.

A query over one window's contents becomes a query over (window, contents) pairs: each source
carries its window as two helper columns; joins of windowed sources also compare them; grouping,
DISTINCT, set operations and window functions also run per window. The law: the lifted answer
restricted to window w, without the helper columns, is the query's answer over w's contents.
It holds for each operator separately, so it holds for their compositions; where no rule is
written the query is not lifted, and runs window by window.

Source: PSoup §3.2 runs all queries in one pass over the data; this is the same for windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from weft.logical.relations import Kind
from weft.logical.windows import Session, microseconds
from weft.plan.blocks import (
    add_condition,
    alias_of,
    from_items,
    hide_from_stars,
    is_aggregated,
    is_global_aggregate,
    is_inner,
    own_nodes,
)

if TYPE_CHECKING:
    from weft.plan.recompute import PlannedSource

Names = tuple[str, ...]  # start, end and, for last-n-rows windows, the number


def _session_field(name: str) -> exp.Expression:
    return exp.Dot(this=exp.column("session_window"), expression=exp.to_identifier(name))


# The edges of a session. As aggregates, since Spark pushes a condition on the grouping column
# session_window below the aggregation, where it meets single rows instead of sessions.
SESSION = (exp.Min(this=_session_field("start")), exp.Max(this=_session_field("end")))


class CannotLift(Exception):
    """Why a query runs window by window."""


def lift(tree: exp.Query, planned: dict[str, PlannedSource]) -> Names:
    """Lift in place; returns the names of the helper columns in the output."""
    names = _Lifter(planned).query(tree, {})
    if names is None:
        raise CannotLift("the outermost SELECT reads no window")
    return names


class _Lifter:
    def __init__(self, planned: dict[str, PlannedSource]) -> None:
        self._planned = planned
        self._blocks = 0

    def query(
        self, query: exp.Query, ctes: dict[str, Names | None], names: Names | None = None
    ) -> Names | None:
        """Lift a query; None when nothing in it is windowed."""
        ctes = self._lift_ctes(query, ctes)
        if isinstance(query, exp.Subquery):
            return self.query(query.this, ctes, names)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, ctes, names)
        if isinstance(query, exp.Select):
            return self._select(query, ctes, names)
        if self._is_windowed(query, ctes):
            raise CannotLift(f"{type(query).__name__.upper()} over a window")
        return None

    def _lift_ctes(
        self, query: exp.Query, ctes: dict[str, Names | None]
    ) -> dict[str, Names | None]:
        clause = query.args.get("with_")
        if clause is None:
            return ctes
        if clause.args.get("recursive") and self._is_windowed(clause):
            raise CannotLift("a recursive CTE over a window")
        found = dict(ctes)
        for cte in clause.expressions:
            names = self.query(cte.this, found)
            found[cte.alias.lower()] = names
            if names and cte.args["alias"].columns:
                for name in names:
                    cte.args["alias"].append("columns", exp.to_identifier(name, quoted=True))
        return found

    def _set_operation(
        self, query: exp.SetOperation, ctes: dict, names: Names | None
    ) -> Names | None:
        if not self._is_windowed(query, ctes):
            return None
        if query.args.get("limit"):
            raise CannotLift("a LIMIT inside the query")
        names = names or self._new_names()
        for side in (query.this, query.expression):
            if self.query(side, ctes, names) is None:
                raise CannotLift("one side of the set operation has no window")
        return names

    def _select(self, select: exp.Select, ctes: dict, names: Names | None) -> Names | None:
        sources = self._sources(select, ctes)
        self._check_expressions(select, ctes)
        windowed = [(alias, found) for alias, found, _ in sources if found]
        if not windowed:
            return None
        self._check_clauses(select)
        if is_global_aggregate(select) and not _is_outermost(select):
            raise CannotLift("a subquery that aggregates without GROUP BY")
        session = self._session_source(select)
        if session:
            window = self._group_by_session(select, *session)
        else:
            self._join_windows(select, sources)
            alias, found = windowed[0]
            window = [exp.column(n, table=alias, quoted=True) for n in found]
            self._group_by_window(select, window)
        hide_from_stars(select, {alias: list(found) for alias, found in windowed})
        self._partition_by_window(select, window)
        names = names or self._new_names()
        for name, column in zip(names, window, strict=True):
            select.append("expressions", exp.alias_(column.copy(), name, quoted=True))
        return names

    def _sources(
        self, select: exp.Select, ctes: dict
    ) -> list[tuple[str, Names | None, exp.Join | None]]:
        found = []
        for item, join in from_items(select):
            found.append((alias_of(item), self._window_of(item, ctes), join))
        return found

    def _window_of(self, item: exp.Expression, ctes: dict) -> Names | None:
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            names = self.query(item.this, ctes)
            if names and item.args.get("alias") and item.args["alias"].columns:
                raise CannotLift("a derived table with a column list")
            return names
        if isinstance(item, exp.Table):
            if item.args.get("pivots"):
                raise CannotLift("PIVOT over a window")
            if item.args.get("sample"):
                raise CannotLift("TABLESAMPLE over a window")
            planned = self._planned.get(item.name)
            if planned is None:
                return ctes.get(item.name.lower())
            if planned.window is None and planned.source.relation.kind is not Kind.TABLE:
                raise CannotLift(f'"{planned.source.relation.name}" has another kind of window')
            return planned.window
        if self._is_windowed(item, ctes):
            raise CannotLift(f"{type(item).__name__.upper()} in FROM over a window")
        return None

    def _check_expressions(self, select: exp.Select, ctes: dict) -> None:
        """Nested queries of WHERE and SELECT over a window would have to follow it."""
        inside = {id(item) for item, _ in from_items(select)}
        for query in select.find_all(exp.Query):
            if query is select or any(id(p) in inside for p in _path(query, select)):
                continue
            if self._in_with(query, select):
                continue
            if self._is_windowed(query, ctes) or self._reads_streams(query):
                raise CannotLift("a subquery that reads a stream")

    @staticmethod
    def _in_with(query: exp.Expression, select: exp.Select) -> bool:
        return any(isinstance(node, exp.With) for node in _path(query, select))

    @staticmethod
    def _check_clauses(select: exp.Select) -> None:
        if select.args.get("limit") or select.args.get("offset"):
            raise CannotLift("a LIMIT inside the query")
        group = select.args.get("group")
        if group and any(group.args.get(k) for k in ("cube", "rollup", "grouping_sets")):
            raise CannotLift("GROUP BY with CUBE, ROLLUP or GROUPING SETS")
        for clause in ("pivots", "sample", "cluster", "distribute", "sort"):
            if select.args.get(clause):
                raise CannotLift(f"{clause.upper()} in the query")

    def _join_windows(self, select: exp.Select, sources: list) -> None:
        """Rows join only within a window: every windowed source compares with the first one."""
        first: tuple[str, Names] | None = None
        for index, (alias, names, join) in enumerate(sources):
            if join is not None and (join.side in ("RIGHT", "FULL") or join.method == "NATURAL"):
                raise CannotLift(f"a {join.side or join.method} join")
            if not names:
                if index == 0 and any(n for _, n, _ in sources) and self._has_outer(sources):
                    raise CannotLift("an outer join whose left side has no window")
                continue
            if first is None:
                if join is not None and not is_inner(join):
                    raise CannotLift("an outer join whose left side has no window")
                first = (alias, names)
                continue
            self._compare(select, join, first, (alias, names))

    @staticmethod
    def _has_outer(sources: list) -> bool:
        return any(join is not None and not is_inner(join) for _, names, join in sources if names)

    @staticmethod
    def _compare(select: exp.Select, join: exp.Join, left: tuple, right: tuple) -> None:
        same = exp.and_(
            *(
                exp.EQ(
                    this=exp.column(a, table=left[0], quoted=True),
                    expression=exp.column(b, table=right[0], quoted=True),
                )
                for a, b in zip(left[1], right[1], strict=True)
            )
        )
        if is_inner(join):
            add_condition(select if not join.args.get("on") else join, same)
        elif join.args.get("using"):
            raise CannotLift("an outer join with USING")
        else:
            add_condition(join, same)

    @staticmethod
    def _group_by_window(select: exp.Select, window: list[exp.Expression]) -> None:
        if not is_aggregated(select):
            return
        group = select.args.get("group")
        if group is None:
            select.set("group", exp.Group(expressions=[c.copy() for c in window]))
        elif not group.args.get("all"):
            group.set("expressions", [*group.expressions, *(c.copy() for c in window)])

    @staticmethod
    def _partition_by_window(select: exp.Select, window: list[exp.Expression]) -> None:
        for node in list(own_nodes(select)):
            if isinstance(node, exp.Window) and not node.args.get("alias"):
                node.set(
                    "partition_by",
                    [*(node.args.get("partition_by") or []), *(c.copy() for c in window)],
                )

    def _session_source(self, select: exp.Select) -> tuple[exp.Table, PlannedSource] | None:
        for item, _ in from_items(select):
            planned = self._planned.get(item.name) if isinstance(item, exp.Table) else None
            if planned and isinstance(planned.source.window, Session):
                return item, planned
        return None

    def _group_by_session(
        self, select: exp.Select, item: exp.Table, planned: PlannedSource
    ) -> list[exp.Expression]:
        """Sessions are per group, so Spark's session_window in GROUP BY makes them."""
        if not select.args.get("group"):
            if not is_aggregated(select):
                raise CannotLift("it does not aggregate")
            select.set("group", exp.Group(expressions=[]))
        group, alias = select.args["group"], alias_of(item)
        window = planned.source.window
        call = exp.Anonymous(
            this="session_window",
            expressions=[
                exp.column(planned.source.relation.time_column, table=alias, quoted=True),
                exp.Literal.string(f"{microseconds(window.gap)} microseconds"),
            ],
        )
        kept = [e for e in group.expressions if not _is_one_of(e, planned.window)]
        for key in window.keys:
            if not any(isinstance(e, exp.Column) and e.name.lower() == key.lower() for e in kept):
                raise CannotLift(f'GROUP BY lacks the session key "{key}"')
        group.set("expressions", [*kept, call])
        for node in list(own_nodes(select)):
            which = _is_one_of(node, planned.window)
            if which:
                node.replace(SESSION[which - 1].copy())
        return [field.copy() for field in SESSION]

    def _is_windowed(self, node: exp.Expression, ctes: dict | None = None) -> bool:
        for table in node.find_all(exp.Table):
            planned = self._planned.get(table.name)
            if planned and planned.window:
                return True
            if ctes and ctes.get(table.name.lower()):
                return True
        return False

    def _reads_streams(self, node: exp.Expression) -> bool:
        found = (self._planned.get(table.name) for table in node.find_all(exp.Table))
        return any(p and p.source.relation.kind is not Kind.TABLE for p in found)

    def _new_names(self) -> Names:
        self._blocks += 1
        names = (f"_weft_start_{self._blocks}", f"_weft_end_{self._blocks}")
        width = max(len(p.window) for p in self._planned.values() if p.window)
        return names if width == 2 else (*names, f"_weft_number_{self._blocks}")


def _is_outermost(select: exp.Select) -> bool:
    """Whether a block's rows are the answer's: the query itself, or a side of its set operation.

    There a window without rows emits nothing; a block inside has one row, as SQL says.
    """
    node = select.parent
    while isinstance(node, exp.SetOperation) or (
        isinstance(node, exp.Subquery) and isinstance(node.parent, exp.SetOperation | None)
    ):
        node = node.parent
    return node is None


def _path(node: exp.Expression, top: exp.Expression) -> list[exp.Expression]:
    """The node and its ancestors below `top`."""
    found = []
    current: exp.Expression | None = node
    while current is not None and current is not top:
        found.append(current)
        current = current.parent
    return found


def _is_one_of(node: exp.Expression, names: Names | None) -> int:
    """1 if the node is the window's start column, 2 if its end, else 0."""
    if names and isinstance(node, exp.Column) and node.name in names:
        return names.index(node.name) + 1
    return 0
