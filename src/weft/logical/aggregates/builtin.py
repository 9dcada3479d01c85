"""The built-in aggregates, and what is known of those that cannot be merged."""

from __future__ import annotations

from dataclasses import dataclass

from weft.logical.aggregates.algebra import Aggregates, Kind, holistic
from weft.logical.aggregates.higher import HIGHER
from weft.logical.aggregates.moments import MOMENTS
from weft.logical.aggregates.picked import PICKED
from weft.logical.aggregates.sets import SETS
from weft.logical.aggregates.simple import SIMPLE
from weft.logical.aggregates.sketches import SKETCHES
from weft.logical.aggregates.states import STATES

ALL_VALUES = "no bounded statistics of two parts give that of both, all values are needed"
HOLISTIC = [
    *(
        holistic(name, ALL_VALUES)
        for name in ("median", "mode", "percentile", "percentile_cont", "percentile_disc")
    ),
    holistic("histogram_numeric", "its bins depend on the order of the rows"),
]
FAMILIES = (SIMPLE, MOMENTS, HIGHER, PICKED, SETS, SKETCHES, STATES, HOLISTIC)
BUILT_IN = Aggregates.of([aggregate for family in FAMILIES for aggregate in family])
CATEGORY = {Kind.DISTRIBUTIVE: "D", Kind.ALGEBRAIC: "A", Kind.SKETCH: "S", Kind.HOLISTIC: "H"}


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of SHOW AGGREGATES, and of ARGUS's AggreRules (its first four columns, Table 1)."""

    function: str
    category: str  # D, A, S, H
    incremental: str | None  # how old and new parts make the new whole
    expansion: str | None  # how a coarser node comes of a finer one
    basics: tuple[str, ...]  # AggreBasics: the statistics that are kept, Table 2
    kind: str
    error: str | None


def rules(aggregates: Aggregates = BUILT_IN) -> list[Rule]:
    """Every aggregate by name, as rows."""
    found = []
    for a in sorted(aggregates, key=lambda a: a.name):
        is_one = a.kind is Kind.DISTRIBUTIVE
        incremental = _incremental(a.basics[0]) if is_one else a.rule or None
        expansion = a.merge[0] if is_one else a.rule or None
        found.append(
            Rule(a.name, CATEGORY[a.kind], incremental, expansion, a.basics, a.kind.value, a.error)
        )
    return found


def basics(aggregates: Aggregates = BUILT_IN) -> list[tuple[str, str, str]]:
    """ARGUS's AggreBasics (Table 2): function, basic statistic, its identifier."""
    return [
        (a.name, basic, _identifier(basic))
        for a in sorted(aggregates, key=lambda a: a.name)
        for basic in a.basics
    ]


def _identifier(basic: str) -> str:
    return basic.replace("(", " ").replace(",", "").replace(")", "")


def _incremental(basic: str) -> str:
    """SUM X(H) + SUM X(N), as the paper writes it; other merges are written as calls."""
    name = _identifier(basic)
    if name.split()[0] in ("SUM", "COUNT"):
        return f"{name}(H) + {name}(N)"
    return f"{name.split()[0]}({name}(H), {name}(N))"
