"""Factor windows: fold rows once into base panes that nobody asked for, and feed trees from them.

Every tree of a plan folds all rows, m·λ in Eq. 3. A base with the edges of *all* trees is finer
than each of them, so a tree can merge the base's partials instead of folding rows:

    C = λ + Σ (f + E_i·Ω_i)      with f = partials that the base writes per tick

instead of Σ (λ + E_i·Ω_i). Given a base, choosing the trees is the same question as before with f
in the place of λ, so Weave Share answers it. f is far below λ on fast streams, and then more trees
pay, each with fewer edges. The base is used when the sum is cheaper than the plan without it.

Source: beyond Weave Share, which has one level of partials. Sound because each edge of a tree is an
edge of the base, and merging partials is associative: every tree sees the same values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.optimizer.weave.cost import CostModel, Load, Stream, cells_of
from weft.optimizer.weave.density import edge_rate
from weft.optimizer.weave.greedy import weave_share
from weft.optimizer.weave.plan import PAPER, Plan, Weaver, plan_cost
from weft.optimizer.weave.windows import Query


@dataclass(frozen=True, slots=True)
class Factored:
    """A plan whose trees are fed by a base (`feed` partials per tick), or by the rows (None)."""

    plan: Plan
    cost: float
    feed: float | None = None
    base_edge_rate: float | None = None

    @property
    def has_base(self) -> bool:
        return self.feed is not None


def factored(
    queries: Iterable[Query],
    stream: Stream,
    model: CostModel = PAPER,
    weaver: Weaver = weave_share,
) -> Factored:
    """The cheaper of the two: trees fed by the rows, or by a base."""
    queries = tuple(queries)
    direct = weaver(queries, stream, model)
    plain = Factored(direct, plan_cost(direct, queries, stream, model))
    if not queries:
        return plain
    based = with_base(queries, stream, model, weaver)
    return based if based.cost < plain.cost else plain


def with_base(
    queries: Iterable[Query],
    stream: Stream,
    model: CostModel = PAPER,
    weaver: Weaver = weave_share,
) -> Factored:
    """The plan with a base, whether it pays or not."""
    queries = tuple(queries)
    rate = edge_rate(queries).value
    # the base is never assembled and needs no pyramid: its longest window is one pane
    load = Load(rate, 0.0, 0.0, 0.0, 1 / rate, cells_of(queries, stream.counts))
    feed = float(model.partials(load, stream))
    fed = replace(stream, rate=feed)
    plan = weaver(queries, fed, model)
    cost = float(model.tree(load, stream)) + plan_cost(plan, queries, fed, model)
    return Factored(plan, cost, feed, rate)
