"""Reading a query, however its answer is kept: stored by evaluations, or assembled from partials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.catalog.records import QueryRecord
from weft.catalog.view import View
from weft.errors import SqlError, Unsupported
from weft.logical.relations import Column
from weft.optimizer.codec import load
from weft.results import answers, duck
from weft.results.duck import Reading
from weft.results.keeping import forgotten

if TYPE_CHECKING:
    import pyarrow as pa

    from weft.results.selected import SelectedAnswer
    from weft.results.shared import SharedAnswer


def is_selection(record: QueryRecord) -> bool:
    """Whether a query selects rows, which are read as they are."""
    return record.shared is not None and record.shared.startswith('{"is":"Selection"')


def is_sliding(record: QueryRecord) -> bool:
    """Whether a query aggregates a window that slides, whose edges are read from the rows."""
    return not (record.is_stored or is_selection(record)) and load(record.shared).edges is not None


def current(view: View, record: QueryRecord, root: Path) -> Reading:
    """The answer now."""
    if record.is_stored:
        return _stored(answers.current(record, _segments(view, record), root))
    if is_selection(record):
        return _shown(record, _selected(view, record, root).now())
    found = _shared(view, record, root)
    if found.shared.is_sliding:
        from weft.results import sliding

        return _shown(record, sliding.now(found))
    if not record.is_per_window:
        from weft.results.shared_log import standing

        return _shown(record, standing(found))
    if found.shared.is_versioned:
        return _shown(record, found.newest(None))
    if record.clock is None:
        return _shown(record, found.newest(-(2**62)))
    return _shown(record, found.newest(record.clock))


def at_instant(view: View, record: QueryRecord, root: Path, micros: int) -> Reading:
    """The answer as the evaluation at or before an instant of the clock left it."""
    refuse_forgotten(record, micros)
    if record.is_stored:
        number = view.evaluation_at(record.id, micros)
        sql = answers.at_instant(record, _segments(view, record), root, micros, number)
        return _stored(sql)
    if is_selection(record):
        return _shown(record, _selected(view, record, root).at(micros))
    found = _shared(view, record, root)
    if found.shared.is_sliding:
        from weft.results import sliding

        return _shown(record, sliding.at(found, micros))
    number = view.evaluation_of(found.stream.id, micros)
    if record.is_per_window and not found.shared.is_versioned:
        upto = -(2**62) if record.clock is None else min(micros, record.clock)
        return _shown(record, found.newest(upto))
    if number < found.finish.evaluation:
        number = 0  # not registered then: no answer
    if record.is_per_window:
        return _shown(record, found.newest(None, number))
    from weft.results.shared_log import standing

    if number == 0:
        return _shown(record, _empty(found))
    return _shown(record, standing(found, number))


def refuse_forgotten(record: QueryRecord, micros: int) -> None:
    """What stood at an instant whose windows are forgotten cannot be told."""
    if record.forgotten is not None and micros <= record.forgotten:
        raise forgotten(record, "the windows of that instant are", "ask for a later instant")


def _empty(found: SharedAnswer) -> Reading:
    return Reading(found.finished(found.nothing()))


def history(view: View, record: QueryRecord, root: Path) -> Reading:
    """Every window emitted so far; for a standing answer, its changes with their instants."""
    if record.is_stored:
        sql = answers.history(record, _segments(view, record), root)
        return _stored(sql if record.is_per_window else _changes_sql(view, record, root).sql)
    if not record.is_per_window:
        return _changes_sql(view, record, root)
    found = _shared(view, record, root)
    upto = None if found.shared.is_versioned else record.clock
    if upto is None and not found.shared.is_versioned:
        upto = -(2**62)
    return _shown(record, found.history(upto), [answers.END, answers.START, answers.NUMBER])


def change_log(view: View, record: QueryRecord, root: Path, after: int = 0) -> Reading:
    """Changes after an evaluation, one row each, in a fixed order: what goes before what comes."""
    if record.is_stored:
        segments = view.segments(record.owner, "changes")
        return _stored(answers.change_log(record, segments, root, after))
    if is_selection(record):
        from weft.results import selected_log

        log = selected_log.change_log(_selected(view, record, root), after)
        return Reading(answers.signed(record, f"({log.sql})"), log.tables)
    from weft.results.shared_log import standing_log, versioned_log

    found = _shared(view, record, root)
    if found.shared.is_sliding:
        from weft.results import sliding

        log = sliding.change_log(found, after)
    elif not record.is_per_window:
        log = standing_log(found, after)
    else:
        log = versioned_log(found, after) if found.shared.is_versioned else found.closed_log(after)
    return Reading(answers.signed(record, f"({log.sql})"), log.tables)


def clocks(view: View, record: QueryRecord) -> dict[int, int | None]:
    """The query's clock by evaluation."""
    if record.is_stored:
        return {e.evaluation: e.clock for e in view.evaluations(record.id)}
    stream_id = int(record.reads[0].split(":")[1])
    return {row.evaluation: row.clock for row in view.clocks(stream_id)}


def is_evaluated_at(view: View, record: QueryRecord, micros: int) -> bool:
    """Whether an evaluation stood at exactly this instant: its answer need not be computed."""
    if record.is_stored:
        number = view.evaluation_at(record.id, micros)
        return view.clock_at(record.id, number) == micros
    if is_selection(record) or is_sliding(record):
        return True  # it reads the rows, at whatever instant
    numbers = [number for number, clock in clocks(view, record).items() if clock == micros]
    return any(number >= record.evaluation for number in numbers)  # since it was registered


def _changes_sql(view: View, record: QueryRecord, root: Path) -> Reading:
    pairs = ", ".join(
        f"({n}, {'NULL' if c is None else c}::BIGINT)" for n, c in clocks(view, record).items()
    )
    log = change_log(view, record, root)
    shown = ", ".join(f"l.{duck.name(c.name)}" for c in record.output_columns())
    kind = f"CASE WHEN l.{answers.DIFF} > 0 THEN 'insert' ELSE 'retract' END"
    sql = (
        f"SELECT make_timestamptz(e.clock) AS changed_at, {kind} AS change, {shown} FROM ({log.sql}) l"
        f" JOIN (VALUES {pairs or '(0, NULL::BIGINT)'}) e(n, clock) ON e.n = l.{answers.EVALUATION}"
        f" ORDER BY e.n, change DESC"
    )
    return Reading(sql, log.tables)


def fetch(found: Reading, columns: tuple[Column, ...]) -> pa.Table:
    """The answer in exactly the declared Arrow types."""
    try:
        return answers.typed(duck.fetch_with(found.sql, found.tables), columns)
    except Unsupported as error:
        if error.code != "WEFT_PULL_FAILED":
            raise
        raise SqlError(
            "the query fails on the values it meets",
            detail=error.detail,
            hint="CREATE OR REPLACE it with a guard, for example nullif(divisor, 0)",
            code="WEFT_QUERY_FAILED",
        ) from error


def _segments(view: View, record: QueryRecord) -> list:
    return view.segments(record.owner, "changes", "base")


def _shared(view: View, record: QueryRecord, root: Path) -> SharedAnswer:
    from weft.results.shared import SharedAnswer

    return SharedAnswer(view, record, root)


def _selected(view: View, record: QueryRecord, root: Path) -> SelectedAnswer:
    from weft.results.selected import SelectedAnswer

    return SelectedAnswer(view, record, root)


def _stored(sql: str) -> Reading:
    return Reading(sql)


def _shown(record: QueryRecord, found: Reading, order: list[str] | None = None) -> Reading:
    return Reading(answers.select(record, found.sql, order=order), found.tables)
