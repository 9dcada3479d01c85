"""The exception tree. Every error has a problem, a detail, a hint and a stable code.

    WeftError
    ├── SqlError               a statement is refused when it is given; line and column point at it
    │   ├── SyntaxProblem          WEFT_SYNTAX
    │   ├── UnknownName            WEFT_UNKNOWN_STREAM / _COLUMN / _FUNCTION / ...
    │   ├── NameTaken              WEFT_NAME_TAKEN
    │   ├── InvalidWindow          WEFT_INVALID_WINDOW
    │   ├── TypeProblem            WEFT_TYPE_MISMATCH
    │   └── Unsupported            WEFT_UNSUPPORTED
    ├── InputError             rows given to Weft do not fit the stream or table
    ├── SourceError            a source cannot be read (a file vanished, a connector is missing)
    ├── StorageError           a segment, the disk or the catalog cannot be read or written
    ├── WarehouseBusy          another process writes to this warehouse
    └── EnvironmentProblem     Java or Spark is missing

The same object is rendered by the Python API, the command line and, later, HTTP:

    column "prise" does not exist in stream "trades"
      detail: its columns are sym, price, qty, ts
      hint:   did you mean "price"?                  [WEFT_UNKNOWN_COLUMN, line 1, column 12]
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WeftError(Exception):
    """Base of every error that Weft raises on purpose."""

    default_code = "WEFT_ERROR"

    def __init__(
        self,
        problem: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        code: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.problem = problem
        self.detail = detail
        self.hint = hint
        self.code = code or self.default_code
        self.line = line
        self.column = column
        super().__init__(problem)

    def __str__(self) -> str:
        place = f", line {self.line}, column {self.column}" if self.line is not None else ""
        tag = f"[{self.code}{place}]"
        lines = [self.problem]
        if self.detail:
            lines.append(f"  detail: {self.detail}")
        if self.hint:
            lines.append(f"  hint:   {self.hint}")
        lines[-1] = f"{lines[-1]}  {tag}"
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """The error as JSON-ready values, for HTTP and for golden tests."""
        return {
            "problem": self.problem,
            "detail": self.detail,
            "hint": self.hint,
            "code": self.code,
            "line": self.line,
            "column": self.column,
        }


class SqlError(WeftError):
    default_code = "WEFT_SQL"


class SyntaxProblem(SqlError):
    default_code = "WEFT_SYNTAX"


class UnknownName(SqlError):
    default_code = "WEFT_UNKNOWN_NAME"


class NameTaken(SqlError):
    default_code = "WEFT_NAME_TAKEN"


class InvalidWindow(SqlError):
    default_code = "WEFT_INVALID_WINDOW"


class TypeProblem(SqlError):
    default_code = "WEFT_TYPE_MISMATCH"


class Unsupported(SqlError):
    default_code = "WEFT_UNSUPPORTED"


class InputError(WeftError):
    default_code = "WEFT_INPUT"


class SourceError(WeftError):
    default_code = "WEFT_SOURCE"


class StorageError(WeftError):
    default_code = "WEFT_STORAGE"


class WarehouseBusy(WeftError):
    default_code = "WEFT_WAREHOUSE_BUSY"


class EnvironmentProblem(WeftError):
    default_code = "WEFT_ENVIRONMENT"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the closest known name, or None when nothing is close."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f'did you mean "{by_lower[close[0]]}"?' if close else None
