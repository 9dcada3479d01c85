"""Nodes and classes in words, for EXPLAIN and for the catalog as relations."""

from __future__ import annotations

import re
from datetime import timedelta

from weft.logical.panes import Panes
from weft.logical.statistics import Dimension
from weft.logical.windows import EPOCH, duration, instant
from weft.optimizer.nodes import AggregateClass, Atom, Node
from weft.optimizer.predicates import Ranking

BEGINNING = -(2**62)  # eager since ever
TIME_TEST = re.compile(r"unix_micros\(`?_weft_time`?\)(?: (>=|<) (\d+))?", re.IGNORECASE)


def kind_of(atom: Atom) -> str:
    if isinstance(atom, Dimension):
        return "dimension"
    return "ranking" if isinstance(atom, Ranking) else "bit"


def column_text(atom: Atom) -> str:
    """A column of partials: an expression, its rank among constants, or whether it holds."""
    if isinstance(atom, Ranking):
        return f"rank of {readable(atom.expression)} among {counted(len(atom.cuts), 'constant')}"
    return atom.key if isinstance(atom, Dimension) else f"whether {readable(atom.key)}"


def columns_text(node: Node) -> str:
    return ", ".join(column_text(atom) for atom in node.columns)


def panes_text(node: Node) -> str:
    if node.panes is None:
        return "totals, a partial for each evaluation"
    shift = f", offset {_micros(node.panes.offset)}" if node.panes.offset else ""
    versioned = ", by evaluation" if node.is_versioned else ""
    return f"panes of {_micros(node.panes.width)}{shift}{versioned}"


def levels_of(node: Node) -> list[str]:
    """The widths of the pyramid's levels."""
    return [] if node.panes is None else [_micros(node.panes.width * w) for w in node.pyramid]


def node_text(node: Node) -> str:
    levels = levels_of(node)
    above = f", levels of {', '.join(levels)}" if len(levels) > 1 else ""
    return f"({columns_text(node)}), {panes_text(node)}{above}"


def edges_text(value: AggregateClass, panes: Panes | None) -> str | None:
    """What of a window that slides is read from the rows; None: nothing, as of all others."""
    if not value.is_sliding or panes is None:
        return None
    return f"rows of at most {_micros(panes.width)} at either edge of the window, as they are"


def window_text(value: AggregateClass) -> str:
    return "whole stream" if value.window is None else str(value.window)


def readable(text: str) -> str:
    """A predicate with its tests on event time as instants."""

    def rule(found: re.Match) -> str:
        if found[1] is None:
            return "event time"
        return f"event time {found[1]} {instant(EPOCH + timedelta(microseconds=int(found[2])))}"

    return TIME_TEST.sub(rule, text)


def counted(count: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + ("es" if what[-1] == "s" else "s")
    return f"{count:,} {what if count == 1 else plural}"


def _micros(value: int) -> str:
    return duration(timedelta(microseconds=value))
