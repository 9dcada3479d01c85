"""Expressions and predicates over a stream's rows in DuckDB's SQL, with Spark's meaning.

What the reading engine cannot say with that meaning (see portable.py) is said by Spark instead: it
becomes a derived column, evaluated once for each row and kept. Comparisons with constants come from
their interval (weft.optimizer.factors), so that `ts > '2026-01-01'` or `x < 1e3` need no cast.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache

import sqlglot
from sqlglot import exp

from weft.logical.aggregates import CannotShare
from weft.logical.aggregates.kinds import refuse_unstored
from weft.logical.canonical import canonical, text_of
from weft.logical.statistics import Dimension
from weft.logical.total import is_total
from weft.optimizer.atoms import Bit
from weft.optimizer.domains import Days, Decimals, Domain, Doubles, Instants, Strings, domain_of
from weft.optimizer.factors import Comparison, Predicate
from weft.optimizer.literals import EPOCH, Value
from weft.optimizer.selections import Derived
from weft.plan.portable import NotPortable, Renderer
from weft.plan.terms import Types

MAY_FAIL = "{} may fail on some row, which must not stop the others"


class RowTerms:
    """The terms of a block without aggregates: each column of the row is itself."""

    def __init__(self, types: Types) -> None:
        self.types = types

    def lowered(self, node: exp.Expression) -> None:
        return None

    def dimension(self, node: exp.Expression) -> Dimension | None:
        if not isinstance(node, exp.Column):
            return None
        return _Column(node.name, self.types.of(node))


class _Column:
    def __init__(self, column: str, type_: str) -> None:
        self.column, self.type = column.replace('"', '""'), type_


class RowSql:
    """Renders what one query says of a row; `derived` collects what Spark has to evaluate."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._renderer = Renderer(RowTerms(types))
        self.derived: dict[Derived, None] = {}

    def output(self, node: exp.Expression) -> str:
        return self._render(node, "an expression of it")

    def where(self, predicate: Predicate) -> str:
        if predicate.may_raise:
            raise CannotShare(MAY_FAIL.format("its WHERE"))
        return " AND ".join(self._factor(part) for part in predicate.factors) or "TRUE"

    def _factor(self, part: Comparison | Bit) -> str:
        subject = _parsed(part.expression)
        if isinstance(part, Bit):
            return f"({self._render(subject, 'its WHERE')})"
        return compared(self._render(subject, "its WHERE"), part)

    def _render(self, node: exp.Expression, what: str) -> str:
        if isinstance(node, exp.Column):
            return self._renderer.render(node)
        form = canonical(node)
        if not is_total(form, self._types.of_text):
            raise CannotShare(MAY_FAIL.format(what))
        try:
            return self._renderer.render(node)
        except NotPortable:
            pass
        type_ = self._types.of(form)
        refuse_unstored(type_)
        found = Derived(text_of(form), type_)
        self.derived[found] = None
        return f'"{found.column}"'


def compared(subject: str, part: Comparison) -> str:
    """A comparison as tests of its subject, in DuckDB's SQL; NULL where the subject is NULL."""
    domain, values = domain_of(part.type), part.interval
    assert domain is not None
    if part.is_point:
        return f"({subject} = {literal(domain, values.low)})"
    tests = []
    if values.low is not None:
        tests.append(_bound(domain, subject, values.low, (">=", ">")))
    if values.high is not None:
        tests.append(_bound(domain, subject, values.high, ("<", "<=")))
    return f"({' AND '.join(tests)})"


def _bound(domain: Domain, subject: str, value: Value, operators: tuple[str, str]) -> str:
    """A bound; of texts, the one after x (x and a zero byte) is said by comparing with x."""
    if isinstance(domain, Strings) and value.endswith("\0"):
        return f"{subject} {operators[1]} {literal(domain, value[:-1])}"
    return f"{subject} {operators[0]} {literal(domain, value)}"


def literal(domain: Domain, value: Value) -> str:
    """DuckDB's SQL for a value of a domain."""
    if isinstance(domain, Strings):
        if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise CannotShare(
                "a constant of it is no text that the reading engine can compare with"
            )
        return "'" + value.replace("'", "''") + "'"
    if isinstance(domain, Doubles):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(domain, Decimals):
        return f"CAST('{value:f}' AS DECIMAL({domain.precision},{domain.scale}))"
    if isinstance(domain, Days):
        return f"DATE '{EPOCH.date() + timedelta(days=value)}'"
    if isinstance(domain, Instants):
        make = "make_timestamp" if domain.type.endswith("ntz") else "make_timestamptz"
        return f"{make}({value})"
    return str(value)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> exp.Expression:
    """An expression, not to be changed: queries compare the same few with many constants."""
    return sqlglot.parse_one(text, dialect="spark")
