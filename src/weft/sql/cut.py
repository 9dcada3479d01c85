"""Cut Weft's own clauses out of a select's tokens; what is left is Spark SQL.

A window written on a table is recorded under the start offset of the table's name, which sqlglot
keeps on the identifier it builds: the binder finds the window again by that offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType

from weft.errors import InvalidWindow, SyntaxProblem, did_you_mean
from weft.logical.relations import Emit
from weft.logical.windows import Window
from weft.sql.brackets import bracket_window
from weft.sql.flink import is_window_function, window_function
from weft.sql.psoup import between_window, find_between
from weft.sql.statements import Word
from weft.sql.tokens import NAMES, Cursor, depths, raw, take_name, word

# Words that end a FROM clause at the same depth, so that a comma is no longer about tables.
AFTER_FROM = {
    "SELECT", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY",
    "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "MINUS", "QUALIFY", "WINDOW",
}  # fmt: skip


@dataclass(slots=True)
class Cut:
    """A select without Weft's clauses, and the clauses."""

    tokens: list[Token] = field(default_factory=list)
    windows: dict[int, Window] = field(default_factory=dict)
    descriptors: dict[int, tuple[Word, ...]] = field(default_factory=dict)
    between: Window | None = None


def cut_emit(text: str, run: Sequence[Token]) -> tuple[Sequence[Token], Emit | None]:
    """Take a trailing EMIT clause off. `emit` alone at the end is a table's alias."""
    levels = depths(run)
    for i in range(len(run) - 2, 0, -1):
        if word(run[i]) == "EMIT" and levels[i] == 0 and _is_emit(run[i + 1 :]):
            return run[:i], _emit(text, run[i:])
    return run, None


def _is_emit(tail: Sequence[Token]) -> bool:
    is_wordy = all(
        token.text.isalpha() and token.token_type in NAMES | {TokenType.ON} for token in tail
    )
    return (
        is_wordy
        and len(tail) <= 4
        and (word(tail[0]) == "ON" or tail[0].token_type is TokenType.VAR)
    )


def _emit(text: str, run: Sequence[Token]) -> Emit:
    written = " ".join(word(token) for token in run)
    for emit in Emit:
        if written == emit.value:
            return emit
    place = Cursor(text, run).place
    forms = [emit.value for emit in Emit]
    guess = "EMIT ON WINDOW CLOSE" if "CLOSE" in written else None
    raise SyntaxProblem(
        f'"{raw(text, run)}" is not a way to emit',
        detail=f"a continuous query may end with {' or '.join(forms)}",
        hint=f'did you mean "{guess}"?' if guess else did_you_mean(written, forms),
        line=place.line,
        column=place.column,
    )


def cut(text: str, run: Sequence[Token]) -> Cut:
    """Take out the windows in brackets, the window functions and BEGIN … END."""
    result = Cut()
    begin = find_between(run)
    if begin is not None:
        result.between = between_window(text, run[begin:])
        run = run[:begin]
    _Scanner(text, Cursor(text, run), result).scan()
    return result


class _Scanner:
    """Walks over tokens, knowing whether a table may come next: only there is [ a window."""

    def __init__(self, text: str, cursor: Cursor, result: Cut) -> None:
        self.text, self.cursor, self.result = text, cursor, result
        self.in_from = [False]  # one flag for each open parenthesis, and the statement itself
        self.has_select = [True]
        self.expects_table = False

    def scan(self) -> None:
        while not self.cursor.is_done:
            if self.expects_table and is_window_function(self.cursor):
                self.take_window_function()
            elif (
                self.expects_table and self.cursor.now.token_type in NAMES and not self.sees_call()
            ):
                self.take_table()
            else:
                self.step()

    def sees_call(self) -> bool:
        return word(self.cursor.ahead()) == "("

    def step(self) -> None:
        """Copy one token and see what it does to the FROM clause."""
        token = self.cursor.next()
        what = word(token)
        if what == "(":
            self.in_from.append(self.expects_table)
            self.has_select.append(word(self.cursor.now) in {"SELECT", "WITH", "FROM"})
        elif what == ")":
            self.leave_parenthesis()
        elif self.starts_tables(what):
            self.in_from[-1] = self.expects_table = True
        elif what != "LATERAL":  # LATERAL (SELECT …) stands where a table does
            self.in_from[-1] = self.in_from[-1] and what not in AFTER_FROM
            self.expects_table = False
        self.result.tokens.append(token)

    def leave_parenthesis(self) -> None:
        self.expects_table = False
        if len(self.in_from) > 1:
            self.in_from.pop()
            self.has_select.pop()

    def starts_tables(self, what: str) -> bool:
        """FROM also stands in extract(year FROM ts) and in IS DISTINCT FROM: not there."""
        if what == "FROM":
            last = word(self.result.tokens[-1]) if self.result.tokens else ""
            return self.has_select[-1] and last != "DISTINCT"
        return what == "JOIN" or (what == "," and self.in_from[-1])

    def take_window_function(self) -> None:
        function = window_function(self.cursor)
        self.result.tokens.extend(function.name)
        key = function.name[-1].start
        self.result.windows[key] = function.window
        self.result.descriptors[key] = function.columns
        self.expects_table = False
        self.refuse_second_window()

    def take_table(self) -> None:
        name = take_name(self.cursor)
        self.result.tokens.extend(name)
        self.expects_table = False
        if self.cursor.sees("["):
            self.result.windows[name[-1].start] = self.take_brackets()
            self.refuse_second_window()
        else:
            self.refuse_window_after_alias(name)

    def take_brackets(self) -> Window:
        bracket = self.cursor.next()
        rest = self.cursor.rest
        close = next((i for i, token in enumerate(rest) if word(token) == "]"), None)
        if close is None:
            place = self.cursor.place_of(bracket)
            raise SyntaxProblem(
                "the window that starts here has no closing ]",
                hint="add the missing ]",
                line=place.line,
                column=place.column,
            )
        self.cursor.at += close + 1
        return bracket_window(self.text, bracket, rest[:close])

    def refuse_second_window(self) -> None:
        if self.cursor.sees("["):
            place = self.cursor.place
            raise InvalidWindow(
                "one stream cannot have two windows",
                hint="keep one of them; to see a stream through two windows, join it with itself",
                line=place.line,
                column=place.column,
            )

    def refuse_window_after_alias(self, name: Sequence[Token]) -> None:
        steps = 1 if self.cursor.sees("AS") else 0
        alias, bracket = self.cursor.ahead(steps), self.cursor.ahead(steps + 1)
        if word(bracket) != "[" or alias is None or alias.token_type not in NAMES:
            return
        place = self.cursor.place_of(bracket)
        stream = raw(self.text, name)
        raise SyntaxProblem(
            "the window comes before the alias",
            hint=f"write {stream} [RANGE …] AS {alias.text}",
            line=place.line,
            column=place.column,
        )
