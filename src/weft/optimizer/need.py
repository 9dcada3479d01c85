"""What a class needs of a node, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.logical.panes import longest
from weft.logical.statistics import Statistic
from weft.optimizer.nodes import AggregateClass


@dataclass(frozen=True, slots=True)
class Need:
    """What a class needs of a node."""

    value: AggregateClass
    statistics: tuple[Statistic, ...]
    is_eager: bool = False  # its windows are merged as they fall due, so fewer nodes a window pay
    forgotten: int | None = None  # windows that end by then need not be there; None: all must
    key: str = field(init=False, compare=False)  # of the class; a digest, so made once

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.value.key)

    @property
    def seen_from(self) -> int | None:
        """No window that must be there starts before this instant; None: one may."""
        return first_seen(self.value, self.forgotten)


def first_seen(value: AggregateClass, forgotten: int | None) -> int | None:
    """Where the windows of a class start at the earliest that end after an instant."""
    if forgotten is None or value.window is None:
        return None
    return forgotten - longest(value.window)
