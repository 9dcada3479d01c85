"""What WITH (...) of a stream or a query must say, checked when the statement is given."""

from __future__ import annotations

from datetime import timedelta

from weft.errors import SqlError, did_you_mean
from weft.logical.relations import StreamDefinition
from weft.sql.intervals import interval_from_text
from weft.sql.statements import AlterQuery, CreateQuery

REQUIRED = {"files": ("path",), "kafka": ("kafka.bootstrap.servers",), "socket": ("host", "port")}
KNOWN = ("push", "files", "kafka", "rate", "socket", "delta")
FORMATS = {
    "files": ("parquet", "csv", "json", "orc", "text", "avro"),
    "kafka": ("json", "csv", "raw"),
    "socket": ("json", "csv", "text"),
}
COLUMNS = {"rate": ("timestamp", "value")}


def check_stream_options(definition: StreamDefinition) -> None:
    source, options = definition.source, definition.options
    hint = did_you_mean(source, KNOWN)
    if source not in KNOWN and hint:
        close = hint.split('"')[1]
        if _distance_one(source, close):
            raise SqlError(f'there is no source "{source}"', hint=hint, code="WEFT_UNKNOWN_SOURCE")
    for key in REQUIRED.get(source, ()):
        if key not in options:
            raise SqlError(
                f'source "{source}" needs the option "{key}"',
                hint=f"add it: WITH (source = '{source}', {key} = '...')",
                code="WEFT_MISSING_OPTION",
            )
    kind = options.get("format")
    if kind is not None and source in FORMATS and kind.lower() not in FORMATS[source]:
        raise SqlError(
            f'source "{source}" has no format "{kind}"',
            detail="its formats are " + ", ".join(FORMATS[source]),
            hint=did_you_mean(kind, FORMATS[source]),
            code="WEFT_UNKNOWN_FORMAT",
        )
    for column in definition.columns if source in COLUMNS else ():
        if column.name.lower() not in COLUMNS[source]:
            raise SqlError(
                f'source "{source}" has no column "{column.name}"',
                detail="its columns are " + ", ".join(COLUMNS[source]),
                hint=did_you_mean(column.name, COLUMNS[source]),
                code="WEFT_UNKNOWN_COLUMN",
            )


POLICIES = {
    "answers": ("auto", "lazy", "eager"),
    "materialize": ("auto", "none", "partial", "complete"),
}


def check_query_options(statement: CreateQuery | AlterQuery) -> None:
    """WITH (answers = …), (materialize = …) and (keep = …) are what a query may say."""
    known = [*POLICIES, "keep"]
    places = getattr(statement.options, "places", {})
    for key, value in statement.options.items():
        place = places.get(key, {})
        if key not in known:
            raise SqlError(
                f'a query has no option "{key}"',
                detail="its options are " + ", ".join(known),
                hint=did_you_mean(key, known) or "write WITH (answers = 'lazy')",
                code="WEFT_UNKNOWN_OPTION",
                **place,
            )
        if key == "keep":
            keep_of(value, **place)
        elif value.lower() not in POLICIES[key]:
            raise SqlError(
                f"{key} cannot be '{value}'",
                detail="it is one of " + ", ".join(POLICIES[key]),
                hint=did_you_mean(value, POLICIES[key]) or "leave it out to let Weft choose",
                code="WEFT_UNKNOWN_OPTION",
                **place,
            )


def keep_of(value: str, **place: int) -> timedelta | None:
    """How long closed windows are kept; None: for ever."""
    if value.strip().lower() == "forever":
        return None
    try:
        found = interval_from_text(value)
    except SqlError as error:
        raise SqlError(
            f"keep cannot be '{value}'",
            detail=error.problem,
            hint="write keep = '7 days', or 'forever'",
            code="WEFT_KEEP",
            **place,
        ) from None
    if found <= timedelta(0):
        raise SqlError(
            "keep needs an interval longer than zero",
            hint="leave it out to keep every window",
            code="WEFT_KEEP",
            **place,
        )
    return found


def _distance_one(a: str, b: str) -> bool:
    """Whether one letter more, less, other or swapped makes them equal: a slip of the keyboard."""
    if abs(len(a) - len(b)) > 1 or a == b:
        return False
    shared = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    rests = (a[shared:], b[shared:])
    swapped = rests[0][:2] == rests[1][:2][::-1] and rests[0][2:] == rests[1][2:]
    return (
        swapped
        or rests[0][1:] == rests[1][1:]
        or rests[0] == rests[1][1:]
        or rests[0][1:] == rests[1]
    )
