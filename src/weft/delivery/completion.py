"""Completion and colours of the shell: keywords, functions, and the names that exist now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer
from pygments.token import Keyword, Name

from weft.delivery.meta import COMMANDS
from weft.delivery.words import FUNCTIONS, KEYWORDS, TYPES

if TYPE_CHECKING:
    from weft.delivery.api import Database

WORD = re.compile(r"[\w$]*$")
OWNER = re.compile(r"(\w+)\.[\w$]*$")
META_NAME = re.compile(r"\\\w*$")


class WeftCompleter(Completer):
    """Offers what fits where the cursor is: a meta-command, a column of `name.`, or any word."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._columns: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}

    def refresh(self) -> None:
        """Look the names up again: called before each prompt, not at each key."""
        self._names, self._columns = dict(self.db.names()), {}

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if META_NAME.fullmatch(before):
            yield from _offer(before, ((name, text) for name, (_, _, text) in COMMANDS.items()))
            return
        found = WORD.search(before)
        word = found.group() if found else ""
        if owner := OWNER.search(before):
            yield from _offer(word, ((c, "column") for c in self._columns_of(owner.group(1))))
        elif word:  # nothing typed yet: an offer of everything would only be in the way
            yield from _offer(word, self._words(document.text, word))

    def _words(self, text: str, word: str) -> Iterator[tuple[str, str]]:
        mentioned = {w.lower() for w in re.findall(r"\w+", text)}
        for name, kind in self._names.items():
            if name.lower() in mentioned:
                yield from ((column, f"column of {name}") for column in self._columns_of(name))
            yield name, kind
        case = str.lower if word.islower() else str.upper
        yield from ((case(keyword), "") for keyword in sorted(KEYWORDS | TYPES))
        yield from ((case(function) + "(", "function") for function in sorted(FUNCTIONS))

    def _columns_of(self, name: str) -> list[str]:
        if name not in self._columns:
            try:
                self._columns[name] = list(self.db.columns(name))
            except Exception:  # completion never gets in the way of typing
                self._columns[name] = []
        return self._columns[name]


def _offer(word: str, candidates: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    seen = set()
    for text, meaning in candidates:
        if text.lower().startswith(word.lower()) and text != word and text not in seen:
            seen.add(text)
            yield Completion(text, start_position=-len(word), display_meta=meaning)


class WeftLexer(SqlLexer):
    """Pygments' SQL with the words that Weft adds."""

    name = "Weft SQL"

    def get_tokens_unprocessed(self, text: str, *args: Any) -> Iterator[tuple[int, Any, str]]:
        words = KEYWORDS | TYPES
        for index, kind, value in super().get_tokens_unprocessed(text, *args):
            if kind in (Name, Keyword):
                if value.upper() in words:
                    kind = Keyword
                else:
                    kind = Name.Function if value.lower() in FUNCTIONS else Name
            yield index, kind, value


def lexer() -> PygmentsLexer:
    return PygmentsLexer(WeftLexer)
