"""Common slips, found before or after sqlglot: what it accepts too kindly, and what it says too dryly."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from weft.errors import SyntaxProblem, did_you_mean
from weft.sql.tokens import CLOSING, NAMES, OPENING, QUOTED, place_at, raw, word

CLAUSES = {
    "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY",
    "LIMIT", "UNION", "INTERSECT", "JOIN", "ON",
}  # fmt: skip
NEEDS_MORE = {
    "SELECT": "a list of columns",
    "FROM": "the name of a stream, table or query",
    "JOIN": "the name of a stream, table or query",
    "WHERE": "a condition",
    "HAVING": "a condition",
    "ON": "a condition",
    "GROUP BY": "columns",
    "ORDER BY": "columns",
    "LIMIT": "a number",
    "UNION": "a SELECT",
    "AS": "a name",
}
PARTNER = {"(": ")", "[": "]", "{": "}"}
MISSPELT = ("FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "UNION", "JOIN", "EMIT")


def refuse_slips(text: str, run: Sequence[Token]) -> None:
    """Refuse what sqlglot lets pass: commas and clauses with nothing after them, open parentheses."""
    _refuse_unbalanced(text, run)
    for token, after in zip(run, [*run[1:], None], strict=True):
        _refuse_pair(text, token, after)


def _refuse_unbalanced(text: str, run: Sequence[Token]) -> None:
    opened: list[Token] = []
    for token in run:
        if token.token_type in OPENING:
            opened.append(token)
        elif token.token_type in CLOSING:
            if not opened or PARTNER[opened[-1].text] != token.text:
                raise _at(
                    text, token, f"this {token.text} closes nothing", "remove it, or open it before"
                )
            opened.pop()
    if opened:
        mark = opened[-1].text
        raise _at(
            text, opened[-1], f"this {mark} is never closed", f"add the missing {PARTNER[mark]}"
        )


def _refuse_pair(text: str, token: Token, after: Token | None) -> None:
    first, second = word(token), word(after)
    is_end = after is None or second in CLAUSES or second in {")", "]"}
    if first == "," and is_end and not (second == "ON"):
        raise _at(
            text,
            token,
            f"there is nothing between this comma and {_found(text, after)}",
            "remove the comma",
        )
    is_keyword = first in NEEDS_MORE and token.token_type not in NAMES
    if is_keyword and is_end and (first, second) != ("UNION", "FROM"):  # Hive's FROM t SELECT …
        raise _needs_more(text, token, after)


def _needs_more(text: str, token: Token, after: Token | None) -> SyntaxProblem:
    what = word(token)
    hint = "SELECT * takes all of them" if what == "SELECT" else None
    return _at(text, token, f"{what} needs {NEEDS_MORE[what]}, found {_found(text, after)}", hint)


def _found(text: str, token: Token | None) -> str:
    return "the end" if token is None else f'"{raw(text, [token])}"'


def _at(text: str, token: Token, problem: str, hint: str | None) -> SyntaxProblem:
    place = place_at(text, token.start)
    return SyntaxProblem(problem, hint=hint, line=place.line, column=place.column)


def translate(text: str, run: Sequence[Token], error: ParseError) -> SyntaxProblem:
    """sqlglot's error as ours: one line, no colours, and the position where the token starts."""
    details = error.errors[0] if error.errors else {}
    token = _token_of(run, details)
    problem, hint = _explain(details.get("description") or "", text, run, token)
    return _at(text, token, problem, hint)


def _token_of(run: Sequence[Token], details: dict[str, object]) -> Token:
    """The token sqlglot complains about: it says where it ends."""
    end = (details.get("line"), details.get("col"))
    return next((token for token in run if (token.line, token.col) == end), run[-1])


def _explain(said: str, text: str, run: Sequence[Token], token: Token) -> tuple[str, str | None]:
    shown = f'"{raw(text, [token])}"'
    index = run.index(token)
    before = run[index - 1] if index else None
    if said.startswith("Expected END after CASE"):
        return "CASE has no END", "write CASE WHEN … THEN … [ELSE …] END"
    if said.startswith("Expected TYPE after CAST"):
        return f"{shown} is not a type", "for example CAST(x AS DOUBLE)"
    if expected := re.match(r"(?:Expecting|Expected) (\S+)", said):
        if expected[1] == "table":
            return f"expected a name after {shown}", None
        return f"expected {expected[1]} before {shown}", _guess(before, token)
    if missing := re.match(r"Required keyword: '(\w+)' missing for .*\.(\w+)'>", said):
        return f"{shown} needs something after it", _for_missing(missing[2])
    return f"unexpected {shown}", _guess(before, token)


def _for_missing(kind: str) -> str | None:
    return {
        "Between": "write x BETWEEN low AND high",
        "Where": "write a condition after WHERE",
    }.get(kind)


def _guess(before: Token | None, token: Token) -> str | None:
    """A misspelt keyword is read as an alias, so the error points at the word after it."""
    if word(before) in {"GROUP", "ORDER", "PARTITION"}:
        return f'did you mean "{word(before)} BY"?'
    if word(before) == "EMIT":
        return "EMIT ON WINDOW CLOSE or EMIT CHANGES is the last thing in a continuous query"
    for candidate in (before, token):
        if candidate is not None and candidate.token_type not in QUOTED and len(candidate.text) > 2:
            hint = did_you_mean(candidate.text, MISSPELT)
            if hint and f'"{word(candidate)}"' not in hint:
                return hint
    if word(token) == "[":
        return "a window in brackets stands directly after the name of a stream in FROM"
    if token.token_type in NAMES and before is not None and before.token_type in NAMES:
        return "is a comma or an operator missing before it?"
    if token.token_type is TokenType.STRING:
        return "quote names with `backticks`: \"…\" and '…' are strings"
    return None
