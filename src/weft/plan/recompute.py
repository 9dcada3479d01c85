"""The recompute plan: any Spark SQL query over the contents of its windows.

Three shapes. A *standing* query is run over what its windows hold at the clock. A *per-window*
query is run for every window that falls due: all of them in one pass where the query can be
lifted (see lift.py), else window by window. Either way the answer is, by construction, the same
SQL run once over the window's contents (UPA Definition 1): recompute is the slow path, and the
oracle of the faster ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from sqlglot import exp

from weft.errors import InvalidWindow
from weft.logical.query import BoundQuery, Source
from weft.logical.relations import WINDOW_END, WINDOW_START, Kind
from weft.logical.windows import LastRows, Session, Window
from weft.plan.arrival import join_tables_as_of_arrival
from weft.plan.blocks import hide_from_stars, is_global_aggregate, keep_rows_only
from weft.plan.lift import CannotLift, lift
from weft.plan.order import SortKey, detach_limit, name_sort_keys


class Shape(StrEnum):
    STANDING = "standing answer"
    ALL_WINDOWS = "all due windows in one pass"
    EACH_WINDOW = "window by window"


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source and the helper columns that the engine must add to it."""

    source: Source
    tick: str | None = None  # arrival of the row, for joins with non-retroactive tables
    validity: tuple[str, str] | None = None  # [from, to) ticks of a table's row
    window: tuple[str, ...] | None = None  # start and end of the row's window, and its number
    shows_time: bool = False  # the time column is named though it is not among the declared ones


@dataclass(frozen=True, slots=True, eq=False)
class RecomputePlan:
    """What to run. `tree` reads placeholders and yields the user's columns and helper columns."""

    shape: Shape
    reason: str
    tree: exp.Query
    sources: tuple[PlannedSource, ...]
    window: Window | None  # of a per-window query
    order: tuple[SortKey, ...]
    limit: int | None  # per window; a standing query keeps its LIMIT in the tree
    offset: int
    projects_window: bool
    output_window: tuple[str, ...] | None  # helper columns with the window, in the tree's output

    @property
    def is_per_window(self) -> bool:
        return self.window is not None


def plan_recompute(bound: BoundQuery) -> RecomputePlan:
    window = common_window(bound)
    tree = bound.tree.copy()
    planned = {s.placeholder: PlannedSource(s) for s in bound.sources}
    projects_window = window is not None and _projects_window(tree)
    show_time_columns(tree, planned)
    join_tables_as_of_arrival(tree, planned)
    if window is None:
        order = name_sort_keys(tree)
        return RecomputePlan(
            Shape.STANDING, _why_standing(bound), tree, tuple(planned.values()), None, order,
            None, 0, False, None,
        )  # fmt: skip
    return _plan_windows(tree, planned, window, projects_window)


def show_time_columns(tree: exp.Query, planned: dict[str, PlannedSource]) -> None:
    """Offer arrival_time and window_time where a query names them, without showing them in `*`."""
    named = {column.name.lower() for column in tree.find_all(exp.Column)}
    for name, source in planned.items():
        relation = source.source.relation
        time = relation.time_column
        if time is None or time in relation.column_names():
            continue
        if time in named or isinstance(source.source.window, Session):
            planned[name] = replace(source, shows_time=True)
            for table in tree.find_all(exp.Table):
                if table.name == name and isinstance(table.parent_select, exp.Select):
                    hide_from_stars(table.parent_select, {table.alias_or_name: [time]})


def _plan_windows(
    tree: exp.Query, planned: dict[str, PlannedSource], window: Window, projects_window: bool
) -> RecomputePlan:
    for index, (name, source) in enumerate(planned.items()):
        if source.source.is_per_window:
            hidden = (f"_weft_ws_{index}", f"_weft_we_{index}")
            if isinstance(window, LastRows):  # two of them may start and end at the same times
                hidden = (*hidden, f"_weft_wn_{index}")
            planned[name] = replace(source, window=hidden)
    name_window_columns(tree, planned)
    order = name_sort_keys(tree)
    limit, offset = detach_limit(tree)
    shape, reason, output = Shape.ALL_WINDOWS, "every stream in it has the same window", None
    attempt = tree.copy()
    try:
        output = lift(attempt, planned)
        tree = attempt
    except CannotLift as obstacle:
        if isinstance(window, Session):
            raise InvalidWindow(
                f"a session window cannot be used here: {obstacle}",
                hint="group by session_window(...) in the same SELECT that reads the stream",
            ) from None
        shape, reason = Shape.EACH_WINDOW, str(obstacle)
        _skip_empty_windows(tree)
    return RecomputePlan(
        shape, reason, tree, tuple(planned.values()), window, order, limit, offset,
        projects_window, output,
    )  # fmt: skip


def common_window(bound: BoundQuery) -> Window | None:
    """The one per-window window of a query; None for a standing query."""
    windows = {s.window for s in bound.sources if s.is_per_window}
    if len(windows) > 1:
        first, second = sorted(str(w) for w in windows)[:2]
        raise InvalidWindow(
            f"one query has two different windows: {first} and {second}",
            detail="a query emits one answer per window, so its windows must be the same",
            hint="make the windows equal, or register two queries and join their answers",
        )
    return next(iter(windows), None)


def _why_standing(bound: BoundQuery) -> str:
    kinds = sorted({str(s.window) for s in bound.streams})
    return "its windows move with the clock: " + ", ".join(kinds) if kinds else "it reads no stream"


def _projects_window(tree: exp.Query) -> bool:
    """Whether the query's own SELECT list already shows the window."""
    select = tree
    while not isinstance(select, exp.Select):
        select = select.this
    names = {WINDOW_START, WINDOW_END}
    for projection in select.expressions:
        inner = projection.unalias()
        if isinstance(inner, exp.Column) and inner.name.lower() in names:
            return True
        if isinstance(inner, exp.Struct | exp.Func) and names <= {
            column.name.lower() for column in inner.find_all(exp.Column)
        }:
            return True
    return False


def name_window_columns(tree: exp.Query, planned: dict[str, PlannedSource]) -> None:
    """Rewrite window_start and window_end to the helper columns of the source they come from."""
    for select in list(tree.find_all(exp.Select)):
        owners = {}
        for table in select.find_all(exp.Table):
            source = planned.get(table.name)
            if source and source.window and table.parent_select is select:
                owners[table.alias_or_name.lower()] = (table.alias_or_name, source.window)
        if owners:
            _rename_in(select, owners)


def _rename_in(select: exp.Select, owners: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    first_alias, first = next(iter(owners.values()))
    position = {WINDOW_START: 0, WINDOW_END: 1}
    for column in list(select.find_all(exp.Column)):
        which = position.get(column.name.lower())
        if which is None or (not column.table and column.parent_select is not select):
            continue
        if column.table and column.table.lower() not in owners:
            continue
        alias, names = owners.get(column.table.lower(), (first_alias, first))
        new = exp.column(names[which], table=alias, quoted=True)
        if column.parent is select and column.arg_key == "expressions":
            new = exp.alias_(new, column.name, quoted=True)
        column.replace(new)


def _skip_empty_windows(tree: exp.Query) -> None:
    """A window that no row falls in emits nothing, as in Spark and Flink, also in this shape."""
    if isinstance(tree, exp.SetOperation):
        _skip_empty_windows(tree.this)
        _skip_empty_windows(tree.expression)
    elif isinstance(tree, exp.Subquery):
        _skip_empty_windows(tree.this)
    elif isinstance(tree, exp.Select) and is_global_aggregate(tree):
        keep_rows_only(tree)


def follows_table(plan: RecomputePlan, table: str) -> bool:
    """Whether a change of the table changes the answer at once: it is read as it is now."""
    reads_streams = any(p.source.relation.time_column for p in plan.sources)
    return any(
        p.source.relation.name.lower() == table.lower()
        and p.validity is None
        and (p.source.relation.is_retroactive or not reads_streams)
        for p in plan.sources
        if p.source.relation.kind is Kind.TABLE
    )
