"""Names and options: the small pieces that every CREATE, DROP and DESCRIBE has."""

from __future__ import annotations

from sqlglot.tokens import TokenType

from weft.errors import SqlError, SyntaxProblem
from weft.logical.relations import ARRIVAL, WINDOW_END, WINDOW_START, WINDOW_TIME
from weft.sql.statements import Options, Word
from weft.sql.tokens import NAMES, Cursor, Place, raw, take_name

RESERVED_PREFIX = "_weft"
RESERVED_COLUMNS = (WINDOW_START, WINDOW_END, WINDOW_TIME, ARRIVAL)
BACKTICKS = "quote unusual names with `backticks`"


def parse_name(cursor: Cursor, what: str) -> Word:
    """A name as it stands, with dots joined: `trades`, trades.late."""
    place = cursor.place
    if cursor.now is None or cursor.now.token_type not in NAMES:
        raise cursor.problem(f"expected the name of a {what}", hint=_name_hint(cursor, what))
    name = "".join(token.text for token in take_name(cursor))
    return Word(name, place.line, place.column)


def _name_hint(cursor: Cursor, what: str) -> str:
    if cursor.now is None or cursor.sees("AS") or cursor.sees("("):
        return f"write the {what}'s name here"
    is_string = cursor.now.token_type is TokenType.STRING
    plain = cursor.now.text if is_string else raw(cursor.text, [cursor.now])
    return f"write it without quotes, or in backticks: `{plain}`" if is_string else BACKTICKS


def parse_new_name(cursor: Cursor, what: str) -> Word:
    """A name for something new: it becomes a folder and a prefix, so a few characters are kept back."""
    name = parse_name(cursor, what)
    place = Place(name.line, name.column)
    if not name.text.strip():
        raise _refused(f"the name of a {what} is empty", place, "use at least one letter")
    if "." in name.text:
        raise _refused(
            f'the name "{name.text}" has a dot in it',
            place,
            f"<stream>.late and <stream>.rejected are Weft's own; try {name.text.replace('.', '_')}",
        )
    if "/" in name.text or "\0" in name.text:
        raise _refused(
            f'the name "{name.text}" has a / or a NUL in it', place, "use another character"
        )
    if name.text.lower().startswith(RESERVED_PREFIX):
        raise _refused(
            f'the name "{name.text}" starts with {RESERVED_PREFIX}',
            place,
            "Weft keeps those for itself; use another name",
        )
    return name


def check_column_name(column: Word, is_stream: bool) -> None:
    place = Place(column.line, column.column)
    if column.text.lower().startswith("_weft_"):
        raise _refused(
            f'the column name "{column.text}" starts with _weft_',
            place,
            "Weft keeps those for itself; use another name",
        )
    if is_stream and column.text.lower() in RESERVED_COLUMNS:
        raise _refused(
            f'a stream cannot have a column "{column.text}"',
            place,
            f"Weft adds columns of that name itself ({', '.join(RESERVED_COLUMNS)}); use another name",
        )


def _refused(problem: str, place: Place, hint: str) -> SqlError:
    return SyntaxProblem(
        problem, hint=hint, code="WEFT_INVALID_NAME", line=place.line, column=place.column
    )


def parse_options(cursor: Cursor, word: str = "WITH") -> Options:
    """WITH (key = 'value', …), or nothing. Keys are lower-cased; numbers and booleans become text."""
    options = Options()
    if not cursor.takes(word):
        return options
    inside = cursor.parenthesized("the options")
    while not inside.is_done:
        key_place = inside.place
        key = _option_key(inside)
        if key in options:
            raise SyntaxProblem(
                f'the option "{key}" is given twice',
                hint="keep one of them",
                line=key_place.line,
                column=key_place.column,
            )
        inside.expect("=", after=f'the option "{key}"', hint=f"write {key} = '<value>'")
        options.places[key] = {"line": key_place.line, "column": key_place.column}
        options[key] = _option_value(inside, key)
        if inside.is_done:
            break
        inside.expect(",", after=f'the option "{key}"', hint="separate options with commas")
        if inside.is_done:
            raise inside.problem("expected another option after the comma", hint="remove the comma")
    return options


def _option_key(cursor: Cursor) -> str:
    """Bare, in backticks or quoted; dots are part of it: kafka.bootstrap.servers."""
    token = cursor.now
    if token is not None and token.token_type is TokenType.STRING:
        return cursor.next().text.lower()
    if token is None or token.token_type not in NAMES:
        raise cursor.problem("expected an option", hint="write WITH (key = 'value', …)")
    return "".join(token.text for token in take_name(cursor)).lower()


def _option_value(cursor: Cursor, key: str) -> str:
    sign = "-" if cursor.takes("-") else ""
    token = cursor.now
    literals = {TokenType.STRING, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE}
    if token is None or token.token_type not in literals:
        raise cursor.problem(
            f'expected a value for the option "{key}"', hint="quote it, for example 'value'"
        )
    cursor.next()
    is_boolean = token.token_type in {TokenType.TRUE, TokenType.FALSE}
    return token.text.lower() if is_boolean else sign + token.text
