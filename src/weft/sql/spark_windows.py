"""Spark's spelling of windows: GROUP BY window(ts, '1 hour') and session_window(ts, '5 minutes').

The call becomes the stream's window, and its struct becomes the stream's two columns window_start
and window_end. Sound because a row has one (window_start, window_end) for each window it is in,
so grouping by the pair is grouping by Spark's struct. A session is cut per group, after WHERE and
joins, as in Spark, whatever the block groups by; only Flink's SESSION names keys of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from sqlglot import exp

from weft.errors import InvalidWindow, SqlError
from weft.logical.relations import WINDOW_END, WINDOW_START
from weft.logical.windows import Session, Window
from weft.sql.attach import can_have_window
from weft.sql.flink import aligned
from weft.sql.intervals import interval_from_text
from weft.sql.scope import Frame, Visible, position, time_column_of
from weft.sql.tokens import Place, located

CALLS = ("window", "session_window")
FIELDS = {"start": WINDOW_START, "end": WINDOW_END}
REWRITTEN = ("expressions", "having", "qualify", "order", "sort", "cluster", "distribute")
FORM = "write window(ts, '1 hour'[, '10 minutes'[, offset]])"


@dataclass(frozen=True, slots=True)
class Absorbed:
    """A call that became its source's window, and the names it may go by in the block."""

    source: Visible
    window: Window
    call: str
    names: frozenset[str]  # window, and the alias a SELECT gave it
    has_own_column: bool  # a source has a real column of the call's name

    def column(self, name: str) -> exp.Column:
        return exp.column(
            name, table=exp.to_identifier(self.source.alias, quoted=_is_odd(self.source.alias))
        )

    def struct(self) -> exp.Expression:
        fields = [
            exp.PropertyEQ(this=exp.to_identifier(field), expression=self.column(column))
            for field, column in FIELDS.items()
        ]
        return exp.Struct(expressions=fields)


def _is_odd(name: str) -> bool:
    return not name.isidentifier()


def absorb_windows(select: exp.Select, frame: Frame) -> None:
    """Turn the block's window calls over a stream's own time into that stream's window."""
    group = select.args.get("group")
    if group is None:
        return
    for element, call in list(_grouped_calls(select, group)):
        source = _source_of(call, frame)
        if source is None:
            continue
        absorbed = _absorb(select, call, source, frame)
        if element is not None:
            _replace_in_group(group, element, absorbed)
        _rewrite_block(select, absorbed, frame)


def _grouped_calls(
    select: exp.Select, group: exp.Group
) -> Iterator[tuple[exp.Expression | None, exp.Anonymous]]:
    """Each window call the block groups by, with the GROUP BY element that says so."""
    for element in group.expressions:
        call = _unaliased(_projection_of(element, select) or element)
        if _is_call(call):
            yield element, call
    if group.args.get("all"):
        yield from (
            (None, c)
            for p in select.expressions[:]
            for c in p.find_all(exp.Anonymous)
            if _is_call(c)
        )


def _projection_of(element: exp.Expression, select: exp.Select) -> exp.Expression | None:
    """What GROUP BY w or GROUP BY 1 stands for."""
    if isinstance(element, exp.Literal) and element.is_int:
        index = int(element.name) - 1
        return select.expressions[index] if 0 <= index < len(select.expressions) else None
    if isinstance(element, exp.Column) and not element.table:
        named = (p for p in select.expressions if isinstance(p, exp.Alias))
        return next((p for p in named if p.alias.lower() == element.name.lower()), None)
    return None


def _unaliased(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Alias) else node


def _is_call(node: object) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in CALLS and bool(node.expressions)


def _source_of(call: exp.Anonymous, frame: Frame) -> Visible | None:
    """The stream whose own time column the call is about; None leaves the call to Spark."""
    time = call.expressions[0]
    if not isinstance(time, exp.Column) or time.args.get("db") is not None:
        return None
    found = [s for s in frame.sources if _is_time_of(time, s)]
    return found[0] if len(found) == 1 else None


def _is_time_of(time: exp.Column, source: Visible) -> bool:
    if source.slot is None or source.output.items or not can_have_window(source.slot.relation):
        return False
    is_here = not time.table or time.table.lower() == source.alias.lower()
    return is_here and (time_column_of(source.slot.relation) or "").lower() == time.name.lower()


def _absorb(select: exp.Select, call: exp.Anonymous, source: Visible, frame: Frame) -> Absorbed:
    window = _window_of(call)
    if source.slot.window not in (None, window):
        raise InvalidWindow(
            f'"{source.alias}" has two windows: {source.slot.window}, and {window} here',
            hint="keep one of them",
            **position(call),
        )
    source.slot.window = window
    aliases = {
        p.alias.lower() for p in select.expressions if isinstance(p, exp.Alias) and p.this == call
    }
    name = call.name.lower()
    own = any(s.has(name) for s in frame.sources)
    return Absorbed(source, window, name, frozenset({name, *aliases}), own)


def _window_of(call: exp.Anonymous) -> Window:
    place = position(call)
    durations = [_duration(argument, call) for argument in call.expressions[1:]]
    try:
        if call.name.lower() == "session_window":
            if len(durations) != 1:
                raise InvalidWindow(
                    "session_window takes a time and a gap",
                    hint="write session_window(ts, '5 minutes')",
                )
            return Session(durations[0])
        if not 1 <= len(durations) <= 3:
            raise InvalidWindow("window takes a time and up to three intervals", hint=FORM)
        slide = durations[1] if len(durations) > 1 else durations[0]
        return aligned(durations[0], slide, *durations[2:])
    except SqlError as error:
        raise (located(error, Place(**place)) if place else error) from None


def _duration(argument: exp.Expression, call: exp.Anonymous) -> timedelta:
    """'1 hour', INTERVAL '1' HOUR, or a sum of such intervals."""
    try:
        if isinstance(argument, exp.Add):
            return _duration(argument.this, call) + _duration(argument.expression, call)
        if isinstance(argument, exp.Interval):
            unit = argument.args.get("unit")
            return interval_from_text(f"{argument.this.name} {unit.sql() if unit else ''}")
        if isinstance(argument, exp.Literal) and argument.is_string:
            return interval_from_text(argument.name)
    except InvalidWindow as error:
        where = position(argument)
        error.line, error.column = where.get("line"), where.get("column")
        raise
    raise InvalidWindow(f"{call.name} needs constant intervals", hint=FORM, **position(argument))


def _replace_in_group(group: exp.Group, element: exp.Expression, absorbed: Absorbed) -> None:
    columns = [absorbed.column(WINDOW_START), absorbed.column(WINDOW_END)]
    kept = []
    for other in group.expressions:
        kept += columns if other is element else [other]
    group.set("expressions", kept)


def _rewrite_block(select: exp.Select, absorbed: Absorbed, frame: Frame) -> None:
    for key in REWRITTEN:
        value = select.args.get(key)
        if isinstance(value, list):
            select.set(key, [_projection(part, absorbed, frame) for part in value])
        elif value is not None:
            select.set(key, _rewrite(value, absorbed, frame))


def _projection(node: exp.Expression, absorbed: Absorbed, frame: Frame) -> exp.Expression:
    """A projection keeps the name that Spark would give it."""
    result = _rewrite(node, absorbed, frame)
    is_struct = isinstance(result, exp.Struct) and result is not node
    return exp.alias_(result, absorbed.call) if is_struct else result


def _rewrite(node: exp.Expression, absorbed: Absorbed, frame: Frame) -> exp.Expression:
    """The expression with window.start, window and repeated calls replaced; subqueries are left."""
    replaced = _replacement(node, absorbed, frame)
    if replaced is not None:
        return replaced
    if isinstance(node, exp.Query):
        return node
    for child in list(node.iter_expressions()):
        new = _rewrite(child, absorbed, frame)
        if new is not child:
            child.replace(new)
    return node


def _replacement(node: exp.Expression, absorbed: Absorbed, frame: Frame) -> exp.Expression | None:
    if isinstance(node, exp.Dot) and _is_same_call(node.this, absorbed, frame):
        field = FIELDS.get(node.expression.name.lower())
        return absorbed.column(field) if field else None
    if _is_same_call(node, absorbed, frame):
        return absorbed.struct()
    if isinstance(node, exp.Anonymous) and node.name.lower() == "window_time":
        return _window_time(node, absorbed, frame)
    if isinstance(node, exp.Column):
        return _column_replacement(node, absorbed, frame)
    return None


def _is_same_call(node: exp.Expression, absorbed: Absorbed, frame: Frame) -> bool:
    if not _is_call(node) or _source_of(node, frame) is not absorbed.source:
        return False
    window = _window_of(node)
    same_gap = isinstance(window, Session) and window.gap == getattr(absorbed.window, "gap", None)
    return window == absorbed.window or same_gap


def _column_replacement(
    node: exp.Column, absorbed: Absorbed, frame: Frame
) -> exp.Expression | None:
    table, name = node.table.lower(), node.name.lower()
    if table in absorbed.names and name in FIELDS and not frame.named(table):
        return absorbed.column(FIELDS[name])
    if not table and name == absorbed.call and not absorbed.has_own_column:
        return absorbed.struct()
    return None


def _window_time(node: exp.Anonymous, absorbed: Absorbed, frame: Frame) -> exp.Expression | None:
    """Spark's window_time(window): the last instant inside the window."""
    argument = node.expressions[0] if len(node.expressions) == 1 else None
    is_bare = (
        isinstance(argument, exp.Column)
        and not argument.table
        and argument.name.lower() in absorbed.names
    )
    if argument is None or not (is_bare or _is_same_call(argument, absorbed, frame)):
        return None
    tick = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MICROSECOND"))
    return exp.paren(exp.Sub(this=absorbed.column(WINDOW_END), expression=tick))
