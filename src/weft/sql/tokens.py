"""Tokens and a cursor over them: where every position in an error message comes from.

Why tokens at all: Weft's own clauses (windows in brackets, WATERMARK FOR, EMIT) are cut out of the
token list, and what is left is Spark SQL, which sqlglot parses with its positions intact.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import parser
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from weft.errors import SqlError, SyntaxProblem
from weft.sql.dialect import DIALECT

QUOTED = {TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING}
NAMES = parser.Parser.ID_VAR_TOKENS | {TokenType.IDENTIFIER}
OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something starts in the text: both count from 1."""

    line: int
    column: int


def place_at(text: str, offset: int) -> Place:
    starts = _line_starts(text)
    line = bisect_right(starts, offset)
    return Place(line, offset - starts[line - 1] + 1)


@lru_cache(maxsize=8)
def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def tokenize(text: str) -> list[Token]:
    try:
        return DIALECT.tokenize(text)
    except TokenError as error:
        raise _untokenizable(text, error) from None


def _untokenizable(text: str, error: TokenError) -> SyntaxProblem:
    """What sqlglot cannot tokenize is a quote or a comment that never ends."""
    missing = re.search(r"Missing (\S+) from (\d+):(\d+)", f"{error} {error.__cause__}")
    if missing is None:
        place = place_at(text, max(text.rfind("/*"), 0))
        return SyntaxProblem(
            "the comment that starts here has no end",
            hint="close it with */",
            line=place.line,
            column=place.column,
        )
    quote, line, column = missing[1], int(missing[2]), int(missing[3])
    kind = "name" if quote == "`" else "string"
    return SyntaxProblem(
        f"the {kind} that starts here has no closing {quote}",
        hint=f"add the missing {quote}; inside a {kind}, write it as "
        + ("``" if quote == "`" else f"\\{quote}"),
        line=line,
        column=column + 1,
    )


def word(token: Token | None) -> str:
    """A keyword or bare word in upper case; empty for what is quoted, and at the end."""
    if token is None or token.token_type in QUOTED:
        return ""
    return token.text.upper()


def raw(text: str, run: Sequence[Token]) -> str:
    """What the user wrote, from the first of these tokens to the last."""
    return text[run[0].start : run[-1].end + 1] if run else ""


def depths(run: Sequence[Token]) -> list[int]:
    """How many parentheses and brackets are open around each token."""
    result, depth = [], 0
    for token in run:
        depth -= token.token_type in CLOSING
        result.append(depth)
        depth += token.token_type in OPENING
    return result


@dataclass(slots=True)
class Cursor:
    """A place in one statement's tokens. `text` is the whole script, so that offsets agree.

    `shapes` are those of the script's selects that have been parsed (see select.py).
    """

    text: str
    tokens: Sequence[Token]
    at: int = 0
    shapes: set[tuple] = field(default_factory=set)

    @property
    def now(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.tokens)

    def ahead(self, steps: int = 1) -> Token | None:
        index = self.at + steps
        return self.tokens[index] if index < len(self.tokens) else None

    @property
    def rest(self) -> Sequence[Token]:
        return self.tokens[self.at :]

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def sees(self, *words: str) -> bool:
        return all(word(self.ahead(i)) == expected for i, expected in enumerate(words))

    def takes(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if found := self.sees(*words):
            self.at += len(words)
        return found

    def expect(self, *words: str, after: str, hint: str | None = None) -> None:
        if not self.takes(*words):
            raise self.problem(f"expected {' '.join(words)} after {after}", hint=hint)

    @property
    def found(self) -> str:
        if self.now is not None:
            return f'"{raw(self.text, [self.now])}"'
        after = self.text[self.tokens[-1].end + 1 :].lstrip() if self.tokens else ""
        return f'"{after[0]}"' if after[:1] in {")", "]", ","} else "the end of the statement"

    @property
    def place(self) -> Place:
        """Where the next token starts, or where the last one ended."""
        if self.now is not None:
            return place_at(self.text, self.now.start)
        end = self.tokens[-1].end + 1 if self.tokens else 0
        return place_at(self.text, end)

    def place_of(self, token: Token) -> Place:
        return place_at(self.text, token.start)

    def problem(
        self, problem: str, *, detail: str | None = None, hint: str | None = None
    ) -> SyntaxProblem:
        """A syntax problem at the next token, which it names."""
        place = self.place
        return SyntaxProblem(
            f"{problem}, found {self.found}",
            detail=detail,
            hint=hint,
            line=place.line,
            column=place.column,
        )

    def parenthesized(self, what: str) -> Cursor:
        """A cursor over what is between this parenthesis and its partner, which is stepped over."""
        if not self.sees("("):
            raise self.problem(f"expected ( before {what}")
        levels = depths(self.rest)
        close = next((i for i, level in enumerate(levels[1:], 1) if level == 0), None)
        if close is None:
            place = self.place
            raise SyntaxProblem(
                f"the parenthesis before {what} is never closed",
                hint="add the missing )",
                line=place.line,
                column=place.column,
            )
        inside = self.tokens[: self.at + close]
        cursor = replace(self, tokens=inside, at=self.at + 1)
        self.at += close + 1
        return cursor


def take_name(cursor: Cursor) -> list[Token]:
    """Step over a name and its dots: trades, or trades.late; empty when no name comes next."""
    name: list[Token] = []
    while cursor.now is not None and cursor.now.token_type in NAMES:
        name.append(cursor.next())
        if not (cursor.sees(".") and cursor.ahead() and cursor.ahead().token_type in NAMES):
            break
        name.append(cursor.next())
    return name


def split(run: Sequence[Token], separator: TokenType) -> list[list[Token]]:
    """The runs between separators that stand outside all parentheses, empty ones included."""
    parts: list[list[Token]] = [[]]
    angles = 0  # the angle brackets of ARRAY<…> hide their commas too
    for token, depth in zip(run, depths(run), strict=True):
        angles += (token.token_type is TokenType.LT) - (token.token_type is TokenType.GT)
        if token.token_type is separator and depth == 0 and angles <= 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def located(error: SqlError, place: Place) -> SqlError:
    """The same error, with a position if it had none: values are checked where no text is known."""
    if error.line is None:
        error.line, error.column = place.line, place.column
    return error
