"""What a class needs of a node, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from weft.logical.statistics import Statistic
from weft.optimizer.nodes import AggregateClass


@dataclass(frozen=True, slots=True)
class Need:
    """What a class needs of a node."""

    value: AggregateClass
    statistics: tuple[Statistic, ...]
    is_eager: bool = False  # its windows are merged as they fall due, so fewer nodes a window pay

    @property
    def key(self) -> str:
        return self.value.key
