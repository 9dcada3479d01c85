"""Non-retroactive tables: a stream's row joins the table as it was when the row arrived.

Every row of a stream carries the tick of its arrival; every version of a table's row the ticks
[from, to) between which it was current. A join with a non-retroactive table gets one more
condition, from ≤ arrival < to, and later changes of the table no longer reach earlier rows.
For a result made of several streams' rows the arrival is that of the last of them.

Source: UPA §4.1 and Definition 2: a result generated at t.ts reflects NRR(t.ts).
Differs: the paper lets only joins read tables. Here IN, EXISTS and scalar subqueries over a table
follow the arrival of the outer row too; a table that meets no stream (alone in a UNION branch, say)
is read as it is at the evaluation; a join with the rows of a DISTINCT or a set operation over a
stream is refused, because such a row has no one arrival.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.errors import Unsupported
from weft.logical.relations import Kind
from weft.plan.blocks import (
    add_condition,
    alias_of,
    from_items,
    hide_from_stars,
    is_aggregated,
    is_inner,
)

if TYPE_CHECKING:
    from weft.plan.recompute import PlannedSource


def join_tables_as_of_arrival(tree: exp.Query, planned: dict[str, PlannedSource]) -> None:
    """Rewrite in place; note in `planned` which helper columns each source must have."""
    if any(_is_versioned(p) for p in planned.values()):
        _Rewriter(planned).query(tree, {}, [])


def _is_versioned(planned: PlannedSource) -> bool:
    relation = planned.source.relation
    return relation.kind is Kind.TABLE and not relation.is_retroactive


class _Rewriter:
    def __init__(self, planned: dict[str, PlannedSource]) -> None:
        self._planned = planned
        self._names = 0
        self._lossy: set[str] = set()  # CTEs over a stream whose rows have no one arrival

    def query(
        self, query: exp.Query, ctes: dict[str, str | None], outer: list[exp.Column]
    ) -> str | None:
        """Rewrite a query; the name of the helper column with its rows' arrival, if it has one."""
        clause = query.args.get("with_")
        if clause is not None:
            ctes = dict(ctes)
            for cte in clause.expressions:
                ctes[cte.alias.lower()] = self._cte(cte, ctes, outer)
                if ctes[cte.alias.lower()] is None and self._reads_stream([(cte.this, None)]):
                    self._lossy.add(cte.alias.lower())
        if isinstance(query, exp.Select):
            return self._select(query, ctes, outer)
        for side in (query.this, query.args.get("expression")):
            if isinstance(side, exp.Query):
                self._drop_helper(side, self.query(side, ctes, outer))
        return None

    def _cte(self, cte: exp.CTE, ctes: dict, outer: list[exp.Column]) -> str | None:
        name = self.query(cte.this, ctes, outer)
        if name and cte.args["alias"].columns:
            cte.args["alias"].append("columns", exp.to_identifier(name, quoted=True))
        return name

    def _select(self, select: exp.Select, ctes: dict, outer: list[exp.Column]) -> str | None:
        items = from_items(select)
        carriers: list[tuple[int, exp.Column]] = []
        for index, (item, _) in enumerate(items):
            column = self._arrival_of(item, ctes, outer)
            if column is not None:
                carriers.append((index, column))
        hidden: dict[str, list[str]] = {}
        for _, column in carriers:
            hidden.setdefault(column.table, []).append(column.name)
        for index, (item, join) in enumerate(items):
            planned = self._planned.get(item.name) if isinstance(item, exp.Table) else None
            if planned and _is_versioned(planned):
                names = self._restrict(select, index, item, join, carriers, outer, items)
                hidden.setdefault(alias_of(item), []).extend(names)
        hide_from_stars(select, hidden)
        self._nested(select, items, ctes, [c for _, c in carriers] or outer)
        return self._expose(select, [c for _, c in carriers])

    def _arrival_of(self, item: exp.Expression, ctes: dict, outer: list) -> exp.Column | None:
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            name = self.query(item.this, ctes, outer)
        elif isinstance(item, exp.Table):
            planned = self._planned.get(item.name)
            if planned is None:
                name = ctes.get(item.name.lower())
            elif planned.source.relation.kind is Kind.STREAM:
                name = planned.tick or self._new_name("tick")
                self._planned[item.name] = replace(planned, tick=name)
            else:
                name = None
        else:
            name = None
        return exp.column(name, table=alias_of(item), quoted=True) if name else None

    def _restrict(
        self,
        select: exp.Select,
        index: int,
        item: exp.Table,
        join: exp.Join | None,
        carriers: list[tuple[int, exp.Column]],
        outer: list[exp.Column],
        items: list,
    ) -> list[str]:
        """Let a table's occurrence show only the versions current at the arrival."""
        own = [column for _, column in carriers] or outer
        if not own and self._reads_stream(items):
            raise _no_arrival(self._planned[item.name])
        if not own:
            return []  # meets no stream: read as it is at the evaluation
        names = (self._new_name("from"), self._new_name("to"))
        self._planned[item.name] = replace(self._planned[item.name], validity=names)
        if join is not None and not is_inner(join):
            own = [column for at, column in carriers if at < index] or own
        condition = _during(own, alias_of(item), names)
        if self._is_preserved(index, items):
            raise _preserved(self._planned[item.name])
        if join is None or is_inner(join):
            add_condition(select, condition)
        elif join.args.get("using") or join.method == "NATURAL":
            raise _needs_on(self._planned[item.name])
        else:
            add_condition(join, condition)
        return list(names)

    def _reads_stream(self, items: list) -> bool:
        """Whether rows of a stream come in without their arrival: from DISTINCT or a set operation."""
        tables = [t for item, _ in items for t in item.find_all(exp.Table)]
        if any(t.name.lower() in self._lossy for t in tables):
            return True
        found = (self._planned.get(t.name) for t in tables)
        return any(p and p.source.relation.kind is Kind.STREAM for p in found)

    @staticmethod
    def _is_preserved(index: int, items: list) -> bool:
        """Whether an outer join keeps the table's rows that match nothing."""
        join = items[index][1]
        if join is not None and join.side in ("RIGHT", "FULL"):
            return True
        later = [j for _, j in items[index + 1 :] if j is not None]
        sides = {"FULL"} if index else {"LEFT", "FULL"}
        has_stream_later = any(j.side in sides and j.kind not in ("SEMI", "ANTI") for j in later)
        return has_stream_later and (index == 0)

    def _nested(self, select: exp.Select, items: list, ctes: dict, outer: list[exp.Column]) -> None:
        inside = {id(item) for item, _ in items}
        for query in list(select.find_all(exp.Query)):
            if query is select or not query.parent:
                continue
            path = _ancestors(query, select)
            nested_deeper = any(isinstance(n, exp.Query) and n is not query for n in path)
            if nested_deeper or any(id(n) in inside or isinstance(n, exp.With) for n in path):
                continue
            target = query.this if isinstance(query, exp.Subquery) else query
            if isinstance(target, exp.Query):
                self._drop_helper(target, self.query(target, ctes, outer))

    def _expose(self, select: exp.Select, carriers: list[exp.Column]) -> str | None:
        """Add the arrival of a block's rows to its output, where a row has one."""
        is_top = select.parent is None
        if not carriers or is_top or select.args.get("distinct"):
            return None
        name = self._new_name("tick")
        arrival = _latest(carriers)
        if is_aggregated(select):
            arrival = exp.Max(this=arrival)
        select.append("expressions", exp.alias_(arrival, name, quoted=True))
        return name

    @staticmethod
    def _drop_helper(query: exp.Query, name: str | None) -> None:
        """A subquery in an expression or a set operation must keep its columns."""
        if name is None:
            return
        select = query
        while isinstance(select, exp.Subquery):
            select = select.this
        if isinstance(select, exp.Select):
            select.set("expressions", [e for e in select.expressions if e.alias != name])

    def _new_name(self, what: str) -> str:
        self._names += 1
        return f"_weft_{what}_{self._names}"


def _latest(columns: list[exp.Column]) -> exp.Expression:
    if len(columns) == 1:
        return columns[0].copy()
    return exp.Anonymous(this="greatest", expressions=[c.copy() for c in columns])


def _during(carriers: list[exp.Column], alias: str, names: tuple[str, str]) -> exp.Expression:
    start, end = (exp.column(name, table=alias, quoted=True) for name in names)
    arrival = _latest(carriers)
    return exp.and_(
        exp.LTE(this=start, expression=arrival.copy()), exp.GT(this=end, expression=arrival.copy())
    )


def _ancestors(node: exp.Expression, top: exp.Expression) -> list[exp.Expression]:
    found = []
    current = node.parent
    while current is not None and current is not top:
        found.append(current)
        current = current.parent
    return [node, *found]


def _preserved(planned: PlannedSource) -> Unsupported:
    name = planned.source.relation.name
    return Unsupported(
        f'an outer join keeps unmatched rows of the non-retroactive table "{name}"',
        detail="its rows have no arrival to be looked up at",
        hint="turn the join around so that the stream is kept, or declare the table RETROACTIVE",
        code="WEFT_TABLE_PRESERVED",
    )


def _no_arrival(planned: PlannedSource) -> Unsupported:
    name = planned.source.relation.name
    return Unsupported(
        f'the non-retroactive table "{name}" is joined with rows that have lost their arrival',
        detail="DISTINCT, UNION, INTERSECT and EXCEPT make one row of several, which arrived at different times",
        hint="join the table inside, before DISTINCT or UNION, or declare the table RETROACTIVE",
        code="WEFT_NO_ARRIVAL",
    )


def _needs_on(planned: PlannedSource) -> Unsupported:
    name = planned.source.relation.name
    return Unsupported(
        f'the outer join with the non-retroactive table "{name}" uses USING or NATURAL',
        hint="write the join condition with ON",
        code="WEFT_TABLE_USING",
    )
