"""The column check: every column must be one that its scope can see."""

from __future__ import annotations

from sqlglot import exp

from weft.errors import SqlError, UnknownName, did_you_mean
from weft.sql.scope import Frame, Visible, position

# Names that Spark reads without parentheses, or makes itself.
SPARKS_OWN = {
    "current_date", "current_timestamp", "current_time", "localtimestamp", "current_user", "user",
    "session_user", "current_catalog", "current_database", "current_schema", "current_timezone",
    "grouping__id",
}  # fmt: skip


def check_column(column: exp.Column, frame: Frame) -> None:
    """Refuse a column that cannot mean anything here."""
    parts = _parts(column)
    _drop_qualifier(column, frame)
    names = [part.name for part in parts]
    if isinstance(column.this, exp.Star):
        _check_star(column, names[:-1], frame)
    elif not any(_resolves(parts, level) for level in frame.outward()):
        raise _unknown(parts, frame)


def _parts(column: exp.Column) -> list[exp.Expression]:
    keys = ("catalog", "db", "table", "this")
    return [column.args[key] for key in keys if column.args.get(key) is not None]


def _drop_qualifier(column: exp.Column, frame: Frame) -> None:
    """trades.late.price: the source stands in the tree under its alias, late."""
    source = frame.named(column.table) if column.args.get("db") is not None else None
    if source is not None and source.qualifier and source.qualifier == column.text("db").lower():
        column.set("db", None)


def _resolves(parts: list[exp.Expression], frame: Frame) -> bool:
    """Whether this frame gives the name a meaning; a name of two sources is refused at once."""
    first = parts[0].name
    if _is_qualified(parts, frame):
        return True
    holders = frame.holders(first)
    if len(holders) == 1:
        return True
    if first.lower() in frame.aliases:
        return True
    if len(holders) > 1:
        raise _ambiguous(parts[0], holders)
    return any(s.may_have(first) for s in frame.sources) or first.lower() in SPARKS_OWN


def _is_qualified(parts: list[exp.Expression], frame: Frame) -> bool:
    if len(parts) < 2:
        return False
    named = [s for s in frame.sources if s.alias.lower() == parts[0].name.lower()]
    if any(s.may_have(parts[1].name) for s in named):
        return True
    dotted = [s for s in frame.sources if s.qualifier and s.qualifier == parts[0].name.lower()]
    return len(parts) > 2 and any(
        s.alias.lower() == parts[1].name.lower() and s.may_have(parts[2].name) for s in dotted
    )


def _check_star(column: exp.Column, names: list[str], frame: Frame) -> None:
    """t.* and struct_column.* are legal; what is left is a misspelt source."""
    for level in frame.outward():
        known = level.named(names[0]) or any(s.may_have(names[0]) for s in level.sources)
        if known or any(s.qualifier == names[0].lower() for s in level.sources):
            return
    raise _unknown_source(_parts(column), frame)


def _ambiguous(name: exp.Expression, holders: list[Visible]) -> SqlError:
    aliases = [source.alias for source in holders]
    return UnknownName(
        f'column "{name.name}" is ambiguous',
        detail=f"it is in {' and in '.join(aliases)}",
        hint=f"say which one: {' or '.join(f'{alias}.{name.name}' for alias in aliases)}",
        code="WEFT_AMBIGUOUS_COLUMN",
        **position(name),
    )


def _unknown(parts: list[exp.Expression], frame: Frame) -> SqlError:
    if len(parts) > 1:
        source = next((s for f in frame.outward() if (s := f.named(parts[0].name))), None)
        if source is None:
            return _unknown_source(parts, frame)
        return _unknown_in(parts[1], [source], [])
    if not frame.sources:
        return UnknownName(
            f'column "{parts[0].name}" does not exist: there is no FROM',
            hint=f"quote it if it is a text: '{parts[0].name}'",
            code="WEFT_UNKNOWN_COLUMN",
            **position(parts[0]),
        )
    if parts[0].name.lower() in frame.aliases_to_come:
        return _too_early(parts[0])
    outside = [s for level in frame.outward() for s in level.sources if level is not frame]
    return _unknown_in(parts[0], frame.sources, outside)


def _unknown_in(name: exp.Expression, sources: list[Visible], outside: list[Visible]) -> SqlError:
    columns = list(dict.fromkeys(column for source in sources for column in source.columns))
    where = f"in {sources[0]}" if len(sources) == 1 else f"in {_listed([s.alias for s in sources])}"
    whose = "its" if len(sources) == 1 else "their"
    return UnknownName(
        f'column "{name.name}" does not exist {where}',
        detail=f"{whose} columns are {', '.join(columns)}" if columns else None,
        hint=did_you_mean(name.name, [*columns, *(c for s in outside for c in s.columns)])
        or _window_hint(name.name, sources),
        code="WEFT_UNKNOWN_COLUMN",
        **position(name),
    )


def _window_hint(name: str, sources: list[Visible]) -> str | None:
    if name.lower() not in {"window_start", "window_end", "window", "window_time"}:
        return None
    stream = sources[0].alias
    return f"no source here has windows that close; give it one, for example {stream} [RANGE 1 HOUR SLIDE 1 HOUR]"


def _too_early(name: exp.Expression) -> SqlError:
    return UnknownName(
        f'"{name.name}" is an alias of this SELECT, and WHERE and ON are evaluated before it',
        hint="repeat the expression, or put the SELECT into a subquery",
        code="WEFT_UNKNOWN_COLUMN",
        **position(name),
    )


def _unknown_source(parts: list[exp.Expression], frame: Frame) -> SqlError:
    """A qualifier that is neither a source nor a column, often a name that an alias hides."""
    written = ".".join(part.name or "*" for part in parts)
    name = parts[0].name
    hidden = next(
        (s for s in frame.sources if s.slot and s.slot.relation.name.lower() == name.lower()), None
    )
    aliases = [source.alias for source in frame.sources]
    if hidden is not None:
        hint = f'here "{name}" is called "{hidden.alias}"'
    elif len(parts) == 2 and (having := [s for s in frame.sources if s.has(parts[1].name)]):
        hint = f'did you mean "{having[0].alias}.{parts[1].name}"?'
    else:
        hint = did_you_mean(name, [*aliases, *(c for s in frame.sources for c in s.columns)])
    return UnknownName(
        f'nothing in this SELECT is called "{name}", so "{written}" does not exist',
        detail=f"the sources are {', '.join(aliases)}" if aliases else None,
        hint=hint,
        code="WEFT_UNKNOWN_COLUMN",
        **position(parts[0]),
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]
