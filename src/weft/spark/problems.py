"""Spark's errors → Weft's: what was wrong, where, and what to do."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException, PythonException

from weft.errors import (
    SourceError,
    SqlError,
    StorageError,
    TypeProblem,
    UnknownName,
    Unsupported,
    WeftError,
    did_you_mean,
)

CODES = {
    "UNRESOLVED_COLUMN": (UnknownName, "WEFT_UNKNOWN_COLUMN"),
    "UNRESOLVED_FIELD": (UnknownName, "WEFT_UNKNOWN_COLUMN"),
    "FIELD_NOT_FOUND": (UnknownName, "WEFT_UNKNOWN_COLUMN"),
    "AMBIGUOUS_REFERENCE": (UnknownName, "WEFT_AMBIGUOUS_COLUMN"),
    "UNRESOLVED_ROUTINE": (UnknownName, "WEFT_UNKNOWN_FUNCTION"),
    "TABLE_OR_VIEW_NOT_FOUND": (UnknownName, "WEFT_UNKNOWN_RELATION"),
    "DATATYPE_MISMATCH": (TypeProblem, "WEFT_TYPE_MISMATCH"),
    "WRONG_NUM_ARGS": (TypeProblem, "WEFT_WRONG_ARGUMENTS"),
    "MISSING_AGGREGATION": (SqlError, "WEFT_NOT_GROUPED"),
    "MISSING_GROUP_BY": (SqlError, "WEFT_NOT_GROUPED"),
    "GROUP_BY_AGGREGATE": (SqlError, "WEFT_NOT_GROUPED"),
    "NUM_COLUMNS_MISMATCH": (SqlError, "WEFT_COLUMN_COUNT"),
    "INCOMPATIBLE_COLUMN_TYPE": (TypeProblem, "WEFT_TYPE_MISMATCH"),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": (Unsupported, "WEFT_UNSUPPORTED"),
}
HINTS = {
    "WEFT_NOT_GROUPED": "add the column to GROUP BY, or aggregate it, for example with max(...)",
    "WEFT_TYPE_MISMATCH": "cast one side, for example CAST(x AS DOUBLE)",
}
ITS_OWN = frozenset({"USER_RAISED_EXCEPTION", "UNRESOLVED_ROUTINE", "FAILED_EXECUTE_UDF"})


def is_data_problem(error: BaseException) -> bool:
    """Whether a running query failed because of the values it met (SQLSTATE class 22), or says so,
    or because of a function of the user's that failed or is gone."""
    if isinstance(error, PythonException):
        return True
    if not isinstance(error, PySparkException):
        return False
    is_told = error.getCondition() in ITS_OWN
    return is_told or (error.getSqlState() or "").startswith("22")


def data_problem_text(error: BaseException) -> str:
    if isinstance(error, PythonException):  # the worker's own words stand under its traceback
        _, _, below = str(error).partition("Traceback (most recent call last):\n")
        said = next((line for line in below.split("\n") if line[:1].strip()), "")
        return said or headline(str(error))
    return headline(str(error))


def headline(message: str) -> str:
    """Spark's message without its class tag, SQLSTATE, plan and stack."""
    text = message.split("\n")[0] if "SQLSTATE" not in message else message.split("SQLSTATE")[0]
    text = re.sub(r"^.*?\[[A-Z_.0-9]+\] ", "", " ".join(text.split()), count=1)
    return text.rstrip(" .;")


def statement_problem(error: PySparkException, text: str) -> WeftError:
    """An analysis error of Spark for a statement that a user gave."""
    condition = (error.getCondition() or "").split(".")[0]
    kind, code = CODES.get(condition, (SqlError, "WEFT_INVALID_QUERY"))
    parameters = error.getMessageParameters() or {}
    line, column = _place(error, text)
    hint = HINTS.get(code)
    proposal = parameters.get("proposal")
    if proposal:
        names = re.findall(r"`([^`]+)`(?=,|$)", proposal) or [proposal]
        hint = did_you_mean((parameters.get("objectName") or "").strip("`"), names) or hint
    message = re.sub(r"`?weft_run_\d+_weft_s\d+`?\.?", "", headline(str(error)))
    return kind(
        _lower_first(message.replace("`", '"')),
        detail=f"Spark calls it {error.getCondition()}" if error.getCondition() else None,
        hint=hint,
        code=code,
        line=line,
        column=column,
    )


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _place(error: PySparkException, text: str) -> tuple[int | None, int | None]:
    """Find the piece of the statement that Spark complains of."""
    for context in error.getQueryContext() or ():
        fragment = context.fragment()
        for candidate in (fragment, fragment.replace("`", "")):
            at = text.lower().find(candidate.lower()) if candidate else -1
            if at >= 0:
                return _position(text, at)
    return _named_in(error, text)


def _named_in(error: PySparkException, text: str) -> tuple[int | None, int | None]:
    """Where the expression that Spark names stands, after the first SELECT."""
    named = (error.getMessageParameters() or {}).get("expression", "").strip('"')
    select = re.search(r"\bselect\b", text, re.IGNORECASE)
    if not named or select is None:
        return None, None
    found = re.compile(rf"(?<!\w){re.escape(named)}(?!\w)", re.IGNORECASE).search(
        text, select.end()
    )
    return (None, None) if found is None else _position(text, found.start())


def _position(text: str, at: int) -> tuple[int, int]:
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def run_problem(error: BaseException, what: str) -> WeftError:
    """An error while a batch runs: the disk, a segment, a source file, or Spark itself."""
    if isinstance(error, WeftError):
        return error
    text = full_text(error)
    path = _first(r"(?:file:)(/[^\s'\",;\]]+)", text) or _first(
        r"(/[^\s'\",;\]]+\.(?:parquet|csv|json)[^\s'\",;\]]*)", text
    )
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return StorageError(
            f"the disk is full: {what} could not be written",
            detail=f"while writing {path}" if path else None,
            hint="free some space and run again; the batch is repeated whole, nothing is lost",
            code="WEFT_DISK_FULL",
        )
    if "FileNotFoundException" in text or ("does not exist" in text and path):
        return StorageError(
            f"a file is missing: {path}",
            detail=f"while working on {what}",
            hint="put the file back and run again; nothing was changed",
            code="WEFT_FILE_MISSING",
        )
    if path and any(
        word in text
        for word in (
            "is not a Parquet file",
            "FAILED_READ_FILE",
            "Could not read footer",
            "can not read",
            "ParquetDecodingException",
        )
    ):
        return StorageError(
            f"a file cannot be read: {path}",
            detail=f"while working on {what}: {headline(str(error))[:300]}",
            hint="restore the file from a backup and run again; nothing was changed",
            code="WEFT_CORRUPT_SEGMENT",
        )
    return SourceError(
        f"{what} failed",
        detail=headline(str(error))[:600],
        hint="nothing was changed; run again when the cause is mended",
        code="WEFT_BATCH_FAILED",
    )


def full_text(error: BaseException) -> str:
    """The messages of an error and of everything that caused it."""
    parts = [str(error)]
    if isinstance(error, PySparkException):
        parts.append(getattr(error, "_stackTrace", None) or "")
        parts.append(str(getattr(error, "_desc", "") or ""))
    cause = getattr(error, "_cause", None) or error.__cause__
    if cause is not None and cause is not error:
        parts.append(full_text(cause))
    java = getattr(error, "java_exception", None)
    if java is not None:
        parts.append(java.toString())
    return "\n".join(parts)


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found.group(1) if found else None


def missing_connector(error: BaseException, source: str) -> SourceError | None:
    """Spark does not know a source's format: say which jar brings it."""
    text = str(error)
    if (
        "Failed to find data source" not in text
        and "DATA_SOURCE_NOT_FOUND" not in text
        and "ClassNotFoundException" not in text
    ):
        return None
    import pyspark

    version = pyspark.__version__
    jars = {
        "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
        "delta": "io.delta:delta-spark_2.13",
    }
    hint = (
        f"put its jar on Spark's class path: WEFT_SPARK_JARS=/path/to.jar, or a session with spark.jars.packages={jars[source]}"
        if source in jars
        else "check the name, or put the connector's jar on Spark's class path with WEFT_SPARK_JARS"
    )
    return SourceError(
        f'Spark has no source "{source}"',
        detail="its connector is not on Spark's class path",
        hint=hint,
        code="WEFT_NO_CONNECTOR",
    )
