"""The plans of all registered queries, made from their statements; no Spark is needed for it."""

from __future__ import annotations

from collections.abc import Callable

from weft.catalog.records import QueryRecord
from weft.catalog.store import Catalog
from weft.catalog.view import View
from weft.engine.aggregates import known_aggregates, marked, user_defined, written_out_plan
from weft.logical.aggregates import Aggregates
from weft.logical.query import BoundQuery
from weft.logical.relations import Emit
from weft.plan.inline import inline_views
from weft.plan.recompute import RecomputePlan, plan_recompute
from weft.results.pull import Standing
from weft.sql.bind import bind
from weft.sql.parse import parse
from weft.sql.statements import Select


class Plans:
    """Plans by query id; those asked for are made, those of changed definitions are made anew."""

    def __init__(self, catalog: Catalog, has_function: Callable[[str], bool]) -> None:
        self._catalog = catalog
        self.has_function = has_function  # whether the user's session has a function of that name
        self._definitions: dict[int, BoundQuery] = {}
        self.by_id: dict[int, RecomputePlan] = {}

    def load(self) -> dict[int, RecomputePlan]:
        """Plan every registered query that a batch runs; others are rows of relations."""
        with self._catalog.read() as view:
            for record in view.stored():
                self.of(view, record)
        return self.by_id

    def of(self, view: View, record: QueryRecord) -> RecomputePlan:
        if record.id not in self.by_id:
            statement = parse(record.statement)[0]
            bound = self.bind(view, statement.select, statement.emit, is_registered=True)
            self.add(record, bound, self.written_out(view, plan_recompute(bound)))
        return self.by_id[record.id]

    def add(self, record: QueryRecord, bound: BoundQuery, plan: RecomputePlan) -> None:
        self._definitions[record.id] = bound
        self.by_id[record.id] = plan

    def bind(
        self, view: View, select: Select, emit: Emit | None, *, is_registered: bool = False
    ) -> BoundQuery:
        """Bind a select, its aggregates marked, with the standing queries it reads inlined.

        The functions of a registered one were known when it was given: if the session of today
        lacks one of them, that query fails when it is evaluated, and not the others.
        """
        known = self.aggregates(view)
        is_other = (lambda name: True) if is_registered else self.has_function
        functions = user_defined(known)
        bound = bind(select, Standing(view), emit, functions=functions, is_other=is_other)
        return inline_views(marked(bound, known), lambda name: self._definition(view, name))

    def _definition(self, view: View, name: str) -> BoundQuery:
        record = view.find(name)
        self.of(view, record)
        return self._definitions[record.id]

    def aggregates(self, view: View) -> Aggregates:
        """The aggregate functions that queries may use: built-in and user-defined."""
        return known_aggregates(tuple(view.aggregates()))

    def written_out(self, view: View, plan: RecomputePlan) -> RecomputePlan:
        """A plan as Spark runs it: without user-defined aggregates."""
        return written_out_plan(plan, self.aggregates(view))

    def forget(self, record: QueryRecord) -> None:
        """Drop a plan; plans that had its definition inlined are made anew."""
        self._drop(record.id)
        with self._catalog.read() as view:
            above = view.readers("query:")
            for query in above:
                self._drop(query.id)
            for query in above:
                self.of(view, query)

    def _drop(self, query_id: int) -> None:
        self.by_id.pop(query_id, None)
        self._definitions.pop(query_id, None)
