"""What a class needs of a node, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.logical.statistics import Statistic
from weft.optimizer.nodes import AggregateClass


@dataclass(frozen=True, slots=True)
class Need:
    """What a class needs of a node."""

    value: AggregateClass
    statistics: tuple[Statistic, ...]
    is_eager: bool = False  # its windows are merged as they fall due, so fewer nodes a window pay
    key: str = field(init=False, compare=False)  # of the class; a digest, so made once

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.value.key)
