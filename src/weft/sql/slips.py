"""Common slips, found before or after sqlglot: what it accepts too kindly, and what it says too dryly."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from weft.errors import SyntaxProblem, did_you_mean
from weft.sql.tokens import CLOSING, NAMES, OPENING, place_at, raw, word
from weft.sql.types import SIMPLE

CLAUSES = {
    "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY",
    "LIMIT", "UNION", "INTERSECT", "JOIN", "ON",
}  # fmt: skip
# What must follow, and an example of it.
NEEDS_MORE = {
    "SELECT": ("a list of columns", "SELECT * takes all of them"),
    "FROM": ("a name", "name a stream, table or query, for example FROM trades"),
    "JOIN": ("a name", "name a stream, table or query, for example JOIN symbols ON …"),
    "WHERE": ("a condition", "for example WHERE price > 10"),
    "HAVING": ("a condition", "for example HAVING count(*) > 10"),
    "ON": ("a condition", "for example ON a.id = b.id"),
    "GROUP BY": ("columns", "for example GROUP BY sym"),
    "ORDER BY": ("columns", "for example ORDER BY price DESC"),
    "UNION": ("a SELECT", "for example UNION ALL SELECT …"),
    "AS": ("a name", "for example AS total"),
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
    what, hint = NEEDS_MORE[word(token)]
    return _at(text, token, f"{word(token)} needs {what}, found {_found(text, after)}", hint)


def _found(text: str, token: Token | None) -> str:
    return "the end" if token is None else f'"{raw(text, [token])}"'


def _at(text: str, token: Token, problem: str, hint: str | None) -> SyntaxProblem:
    place = place_at(text, token.start)
    return SyntaxProblem(problem, hint=hint, line=place.line, column=place.column)


def translate(text: str, run: Sequence[Token], error: ParseError) -> SyntaxProblem:
    """sqlglot's error as ours: one line, no colours, and the position where the token starts."""
    details = error.errors[0] if error.errors else {}
    token = _token_of(run, details)
    before = list(run[: run.index(token)])
    for explain in (_misplaced, _missing, _misspelt):
        if (problem := explain(text, before, token, details.get("description") or "")) is not None:
            return problem
    return _at(text, token, f'"{raw(text, [token])}" is not expected here', _guess(before, token))


def _token_of(run: Sequence[Token], details: dict[str, object]) -> Token:
    """The token sqlglot complains about: it says where it ends."""
    end = (details.get("line"), details.get("col"))
    return next((token for token in run if (token.line, token.col) == end), run[-1])


def _misspelt(text: str, before: list[Token], token: Token, said: str) -> SyntaxProblem | None:
    """A misspelt keyword is read as an alias, so sqlglot points at the word after it."""
    for candidate in ([before[-1]] if before else []) + [token]:
        name = word(candidate)
        if name in {"GROUP", "ORDER", "PARTITION"}:
            return _at(text, candidate, f"{name} needs BY", f"write {name} BY …")
        is_candidate = name.isalpha() and len(name) > 2 and name not in MISSPELT
        if is_candidate and (hint := did_you_mean(name, MISSPELT)):
            return _at(text, candidate, f'"{candidate.text}" is not expected here', hint)
    return None


def _missing(text: str, before: list[Token], token: Token, said: str) -> SyntaxProblem | None:
    """Something that had to come next did not."""
    shown = f'"{raw(text, [token])}"'
    if said.startswith("Expected END after CASE"):
        case = next((t for t in reversed(before) if word(t) == "CASE"), token)
        return _at(text, case, "this CASE has no END", "write CASE WHEN … THEN … [ELSE …] END")
    if said.startswith("Expected TYPE after CAST"):
        hint = did_you_mean(token.text, SIMPLE) or "for example CAST(x AS DOUBLE)"
        return _at(text, token, f"{shown} is not a type", hint)
    if "expressions.core.Between" in said:
        return _at(text, token, "BETWEEN needs two ends", "write x BETWEEN low AND high")
    if said.startswith("Required keyword"):
        return _at(
            text, token, f"{shown} needs something after it", "finish the expression, or remove it"
        )
    return None


def _misplaced(text: str, before: list[Token], token: Token, said: str) -> SyntaxProblem | None:
    """Weft's own clauses where they cannot stand."""
    bracket = next((t for t in reversed(before[-4:]) if word(t) == "["), None)
    if bracket is not None and any(word(t) in {"RANGE", "ROWS", "SINCE"} for t in before[-3:]):
        hint = "write the window directly after the name of a stream in FROM: FROM trades [RANGE 1 HOUR]"
        return _at(text, bracket, "a window cannot stand here", hint)
    if before and word(before[-1]) == "EMIT":
        hint = "write EMIT ON WINDOW CLOSE or EMIT CHANGES at the very end of a continuous query"
        return _at(text, before[-1], "EMIT is not the last clause", hint)
    return None


def _guess(before: list[Token], token: Token) -> str | None:
    if token.token_type is TokenType.STRING:
        return "quote names with `backticks`: '…' and \"…\" are strings"
    if before and token.token_type in NAMES and before[-1].token_type in NAMES:
        return "is a comma or an operator missing before it?"
    return "check what comes before it"
