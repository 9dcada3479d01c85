"""Which classes share panes: the weave optimiser asked about a stream's network.

    classes ──kinds of nodes (fusing.py)──▶ queries of the optimiser ──weave──▶ trees ──▶ panes

Source: Weave Share §5.1 from scratch, §5.2 as queries come, §5.3 with measured counts. A tree here is
what shares one set of panes. New classes are woven into the trees that stand; from scratch it is
woven when nothing stands, or in the background (engine/weaver.py).
`forced` plans are for `weft bench plans` and for tests: answers do not depend on the plan.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from weft.logical.panes import Paned, Panes, hopping_of, joined
from weft.logical.windows import Cumulating, microseconds
from weft.optimizer import fusing
from weft.optimizer.factors import Predicate
from weft.optimizer.measures import Measures
from weft.optimizer.need import Need
from weft.optimizer.weave.baselines import no_share, shared
from weft.optimizer.weave.batch import EngineCosts
from weft.optimizer.weave.cost import PaperCosts, Stream
from weft.optimizer.weave.counts import MeasuredCounts
from weft.optimizer.weave.incremental import IncrementalWeave
from weft.optimizer.weave.kinds import Kind, Kinds
from weft.optimizer.weave.local import improved
from weft.optimizer.weave.plan import Plan, plan_of
from weft.optimizer.weave.windows import Query, cumulating, in_ticks

FED = "fed"  # a tree for each set of panes, computed from finer ones wherever that can be
FORCED = ("none", "shared", "paper", FED, "random")
KindKey = tuple[tuple[str, ...], bool, fusing.Expressions]  # dimensions, versioned, expressions


@dataclass(frozen=True, slots=True)
class Home:
    """Where a class goes: its panes, and the number of its tree where trees are forced apart."""

    panes: Panes
    apart: int = 0


@dataclass(frozen=True, eq=False)
class Weaving:
    """How a network is planned: what was measured, how far a plan may stray, what is forced."""

    measures: Measures = field(default_factory=Measures)
    tolerance: float = 0.2
    forced: str | None = None  # one of FORCED, "random:<seed>"

    def kinds(
        self, needs: Sequence[Need], standing: Mapping[str, fusing.Expressions] | None = None
    ) -> dict[str, KindKey]:
        """The kind of node for each class. `standing`: the expressions of those that they read."""
        groups: dict[tuple, dict[Predicate, list[Need]]] = {}
        for need in needs:
            value = need.value
            kind = (value.columns, value.is_versioned, value.window is None)
            groups.setdefault(kind, defaultdict(list))[value.predicate].append(need)
        found: dict[str, KindKey] = {}
        for (columns, is_versioned, _), by_predicate in groups.items():
            home = self._fused(by_predicate, standing or {})
            for predicate, members in by_predicate.items():
                kind = (columns, is_versioned, home[fusing.signature_of(predicate)])
                found |= {need.key: kind for need in members}
        return found

    def _fused(
        self,
        by_predicate: Mapping[Predicate, list[Need]],
        standing: Mapping[str, fusing.Expressions],
    ) -> dict[fusing.Expressions, fusing.Expressions]:
        values = [need.value for members in by_predicate.values() for need in members]
        if self.forced is not None or values[0].window is None:
            return {asked: asked for asked in map(fusing.signature_of, by_predicate)}
        widths = sorted(value.panes.width for value in values)
        panes = fusing.Panes(widths[len(widths) // 2], max(value.longest for value in values))
        now = {}
        for predicate, members in by_predicate.items():
            stands = next((standing[n.key] for n in reversed(members) if n.key in standing), None)
            if stands is not None:
                now[fusing.signature_of(predicate)] = stands
        return fusing.fuse(values[0].dimensions, by_predicate, panes, self.measures, now)

    def homes(
        self, needs: Sequence[Need], kinds: Mapping[str, KindKey], current: Mapping[str, Home]
    ) -> dict[str, Home]:
        """Panes for each class with windows. `current`: those that stand, which stay if they can."""
        paned = [need for need in needs if need.value.window is not None]
        if not paned:
            return {}
        plan = self.plan(paned, kinds, current)
        found: dict[str, Home] = {}
        named = {need.key: need for need in paned}
        for number, tree in enumerate(plan, 1):
            own = {named[key].value.panes for key in tree}
            own |= {current[key].panes for key in tree if key in current}
            home = Home(joined(*own), number if self.forced not in (None, FED) else 0)
            found |= dict.fromkeys(tree, home)
        return found

    def plan(
        self, needs: Sequence[Need], kinds: Mapping[str, KindKey], current: Mapping[str, Home]
    ) -> Plan:
        if self.forced is not None:
            return self._forced(self.queries(needs, kinds), needs)
        stream, model = self.stream(needs, kinds), EngineCosts(self.measures.costs)
        new = [need for need in needs if need.key not in current]
        if len(new) == len(needs):
            return improved(self.queries(needs, kinds), stream, model)
        standing, trees = self.standing(needs, kinds, current)
        woven = IncrementalWeave(
            [query for _, query in standing.values()], stream, model, tolerance=self.tolerance,
            weaver=improved, plan=plan_of(trees.values()),
        )  # fmt: skip
        for query in self.queries(new, kinds):
            woven.add(query)
        members = {key: keys for key, (keys, _) in standing.items()}
        return plan_of(
            [each for key in tree for each in members.get(key, (key,))] for tree in woven.plan
        )

    def standing(
        self, needs: Sequence[Need], kinds: Mapping[str, KindKey], current: Mapping[str, Home]
    ) -> tuple[dict[str, tuple[list[str], Query]], dict[Home, list[str]]]:
        """What stands, each with the keys of its classes; and which of these share a tree.

        Trees that stand are merged or not, as they are. Lazy classes of one kind in one tree bring it
        nothing but panes and their longest window: one query with these is as good as all of them.
        """
        alike: dict[tuple, list[Need]] = defaultdict(list)
        for need in needs:
            if need.key in current:
                apart = need.key if need.is_eager else None
                alike[current[need.key], kinds[need.key], apart].append(need)
        found: dict[str, tuple[list[str], Query]] = {}
        trees: dict[Home, list[str]] = defaultdict(list)
        for (home, kind, apart), members in alike.items():
            keys = [need.key for need in members]
            if apart is None:
                query = self._together(members, kind)
            else:
                query = self._query(members[0], kind)
            found[query.id] = keys, query
            trees[home].append(query.id)
        return found, trees

    def _together(self, members: list[Need], kind: KindKey) -> Query:
        """A lazy query with the panes of all of them, and the longest of their windows."""
        panes = joined(*{need.value.panes for need in members})
        names = frozenset([kind_name(kind)])
        most = max(_length(need.value.window) for need in members)
        return Query(members[0].key, panes.width, most, panes.offset, names, reads=0.0)

    def queries(self, needs: Sequence[Need], kinds: Mapping[str, KindKey]) -> list[Query]:
        return [self._query(need, kinds[need.key]) for need in needs]

    def _query(self, need: Need, kind: KindKey) -> Query:
        """Times in microseconds; what is read of a window counts only if it is merged as it closes."""
        window, reads = need.value.window, 0.0
        if need.is_eager:
            rows = self.measures.rows * need.value.longest / self.measures.span
            reads = self.measures.curve(need.value.dimensions).at(rows)
        names = frozenset([kind_name(kind)])
        return replace(_as_query(window), id=need.key, dimensions=names, reads=reads)

    def stream(self, needs: Sequence[Need], kinds: Mapping[str, KindKey]) -> Stream:
        """The measured stream, with a curve for each kind of node."""
        members: dict[KindKey, list[Need]] = defaultdict(list)
        for need in needs:
            members[kinds[need.key]].append(need)
        found = [self._kind(kind, group) for kind, group in members.items()]
        measures = self.measures
        return Stream(measures.rows / measures.span, Kinds(found), measures.span)

    def _kind(self, kind: KindKey, group: list[Need]) -> Kind:
        atoms = fusing.signatures([need.value.predicate for need in group]).atoms
        curve = self.measures.curve([*group[0].value.dimensions, *atoms])
        columns = frozenset(kind[0]) | frozenset(atom.column for atom in atoms)
        return Kind(kind_name(kind), columns, curve, kind[1])

    def _forced(self, queries: list[Query], needs: Sequence[Need]) -> Plan:
        how, _, seed = self.forced.partition(":")
        if how in ("none", FED):
            return no_share(queries)
        if how == "shared":
            return shared(queries)
        if how == "paper":
            return self.paper_plan(queries, needs)
        trees: dict[int, list[str]] = defaultdict(list)
        for query in queries:  # a class stays where it is when others come
            draw = random.Random(f"{seed}:{query.id}")
            trees[draw.randint(0, 3)].append(query.id)
        return plan_of(trees.values())

    def paper_plan(self, queries: Sequence[Query], needs: Sequence[Need]) -> Plan:
        """Weave Share by the paper's own costs (Eq. 1), with its trees' groups (§5.3)."""
        asked, stream = self.paper_view(queries, needs)
        return improved(asked, stream, PaperCosts())

    def paper_view(
        self, queries: Sequence[Query], needs: Sequence[Need]
    ) -> tuple[list[Query], Stream]:
        """The same queries as the paper sees them: every window is read, trees are cubes."""
        tick, times = in_ticks([(q.slide, q.length, q.offset) for q in queries])
        found, distinct = [], {}
        for query, need, (slide, length, offset) in zip(queries, needs, times, strict=True):
            for d in need.value.dimensions:
                distinct[d.column] = max(1.0, self.measures.curve([d]).at(self.measures.rows))
            text = None if need.value.predicate.key == "TRUE" else need.value.predicate.key
            names = frozenset(d.column for d in need.value.dimensions)
            found.append(Query(query.id, slide, length, offset, names, text, 1.0))
        rate = self.measures.rows / self.measures.span * tick
        return found, Stream(rate, MeasuredCounts(distinct), self.measures.span / tick)


def _as_query(window: Paned) -> Query:
    """In microseconds."""
    window = hopping_of(window)
    if isinstance(window, Cumulating):
        return cumulating("", microseconds(window.size), microseconds(window.step))
    slide = microseconds(window.slide)
    return Query("", slide, microseconds(window.length), microseconds(window.offset) % slide)


@lru_cache(maxsize=1 << 14)
def _length(window: Paned) -> int:
    return _as_query(window).length


@lru_cache(maxsize=4096)
def kind_name(kind: KindKey) -> str:
    columns, is_versioned, expressions = kind
    return "|".join([",".join(columns), str(is_versioned), ",".join(sorted(expressions))])
