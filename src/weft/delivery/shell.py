"""The interactive shell, and its plain form for a pipe.

A statement ends with a semicolon and may take several lines; Ctrl-C clears it, Ctrl-D leaves.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import completion_is_selected, has_completions
from prompt_toolkit.formatted_text import HTML
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from weft.delivery.completion import WeftCompleter, lexer
from weft.delivery.problems import draw_fault, draw_problem
from weft.delivery.split import is_complete
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.delivery.session import Session

WORDS_TO_LEAVE = {"exit", "quit", "\\q"}
PROMPT, CONTINUATION = "weft> ", "   -> "


def read_statements(session: Session, lines: TextIO) -> bool:
    """Carry out statements from a pipe as soon as each is complete; stop at the first error.

    Blank lines stand for what was carried out already, so that errors name the pipe's own lines.
    """
    done, pending = 0, ""
    for line in lines:
        pending += line
        if (";" in line or pending.startswith("\\")) and is_complete(pending):
            if not session.attempt("\n" * done + pending):
                return False
            done += pending.count("\n")
            pending = ""
        if session.is_over:
            return True
    return session.attempt("\n" * done + pending)


class Shell:
    """Prompt, carry out, repeat."""

    def __init__(self, session: Session, place: str) -> None:
        self.session = session
        self.place = place
        self.completer = WeftCompleter(session.db)
        self.prompt: PromptSession[str] = PromptSession(
            history=_history(),
            completer=self.completer,
            complete_while_typing=True,
            complete_in_thread=True,
            auto_suggest=AutoSuggestFromHistory(),
            lexer=lexer(),
            multiline=True,
            prompt_continuation=lambda width, number, is_soft_wrap: CONTINUATION,
            key_bindings=_keys(),
            bottom_toolbar=self._toolbar,
            enable_open_in_editor=True,
            tempfile_suffix=".sql",
            reserve_space_for_menu=6,
        )
        self._is_running = False

    def run(self) -> None:
        console = self.session.out
        console.print(
            "[bold]Weft[/bold]: statements end with ;  [dim]\\? for help, \\q to leave[/dim]"
        )
        draft = ""
        while not self.session.is_over:
            self._look_around()
            try:
                text = self.prompt.prompt(PROMPT, default=draft).strip()
            except KeyboardInterrupt:
                draft = ""
                continue
            except EOFError:
                return
            draft = self._carry_out(text)

    def _carry_out(self, text: str) -> str:
        """Carry out what was typed; give the text that the next prompt starts with."""
        word = text.rstrip("; ").lower()
        if word in WORDS_TO_LEAVE:
            self.session.is_over = True
        elif word == "\\e":
            return self._edit(self.session.last_statement)
        elif word == "help":
            self.session.attempt("\\?")
        elif word == "run":
            self._attempt("\\run")
        else:
            self._attempt(text)
        return ""

    def _attempt(self, text: str) -> None:
        try:
            self.session.attempt(text)
        except KeyboardInterrupt:
            self.session.note("cancelled")
        except Exception as error:  # a fault of ours must not take the shell with it
            draw_fault(self.session.err, error)

    def _edit(self, text: str) -> str:
        """The text as it comes back from the user's editor."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "statement.sql"
            path.write_text(f"{text};\n" if text else "", encoding="utf-8")
            try:
                subprocess.run([*shlex.split(editor), str(path)], check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                draw_problem(
                    self.session.err, WeftError(f"cannot edit: {error}", hint="set EDITOR")
                )
                return text
            return path.read_text(encoding="utf-8").strip()

    def _look_around(self) -> None:
        """Once per prompt: names for completion, and whether the pipeline runs."""
        try:
            self.completer.refresh()
            self._is_running = bool(self.session.db.status().is_running)
        except Exception:  # the prompt must come even when the catalog does not answer
            self._is_running = False

    def _toolbar(self) -> HTML:
        state = "running" if self._is_running else "not running: \\run processes what is available"
        return HTML(" {}  <b>{}</b>").format(self.place, state)


def _history() -> History:
    path = Path(os.environ.get("WEFT_HISTORY") or Path.home() / ".weft_history")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _is_ready(text: str) -> bool:
    """Whether Enter sends the text instead of starting a new line."""
    text = text.strip()
    return not text or text.lower() in WORDS_TO_LEAVE | {"help", "run"} or is_complete(text)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        if _is_ready(event.current_buffer.text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None  # take the word, stay on the line

    @keys.add("escape", filter=has_completions, eager=True)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    return keys
