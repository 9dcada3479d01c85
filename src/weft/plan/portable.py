"""Expressions of a finish in DuckDB's SQL, with the meaning they have in Spark.

A short list of nodes, each with the types for which both engines agree; anything else raises
NotPortable, and Spark finishes instead.
"""

from __future__ import annotations

from sqlglot import exp

from weft.plan.resolve import END, START
from weft.plan.terms import Terms


class NotPortable(Exception):
    """DuckDB cannot say this with Spark's meaning."""


class Renderer:
    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def render(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Column) and node.name in (START, END):
            return f'"{node.name}"'
        if found := self._terms.lowered(node):
            if found.duck is None:
                raise NotPortable
            return found.duck
        if dimension := self._terms.dimension(node):
            return f'"{dimension.column}"'
        raise NotPortable
