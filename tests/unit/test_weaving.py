"""The optimiser in the engine's hands: curves, kinds, even panes, fusing, feeding, placing, fitting."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlglot import parse_one

from weft.logical.panes import Panes, joined, panes_of
from weft.logical.statistics import Dimension, Statistic
from weft.logical.windows import Cumulating, Hopping
from weft.optimizer.costing import Placed, network_cost, work_by_tree
from weft.optimizer.factors import EVERYTHING, factor
from weft.optimizer.feeding import Trees, plan_cost
from weft.optimizer.fitting import Observation, errors, fit
from weft.optimizer.fusing import signature_of
from weft.optimizer.measures import SECOND, Measures
from weft.optimizer.need import Need
from weft.optimizer.network import Network
from weft.optimizer.nodes import AggregateClass, LiveClass, LiveNode, Route
from weft.optimizer.placing import homes_of, needs_of, place, switched
from weft.optimizer.planning import plan_nodes
from weft.optimizer.predicates import Condition
from weft.optimizer.profile import Profile, load_profile, profile_of
from weft.optimizer.weave.baselines import exhaustive, no_share, shared
from weft.optimizer.weave.batch import BatchCosts, EngineCosts, work_of
from weft.optimizer.weave.cost import Stream, load_of
from weft.optimizer.weave.curves import GRID, ONE, filling, measured
from weft.optimizer.weave.even import EvenSpace, even_panes
from weft.optimizer.weave.incremental import IncrementalWeave
from weft.optimizer.weave.kinds import Kind, Kinds
from weft.optimizer.weave.local import improved
from weft.optimizer.weave.plan import covers_once
from weft.optimizer.weave.plan import plan_cost as weave_cost
from weft.optimizer.weave.windows import Query
from weft.optimizer.weaving import Weaving

SYM = Dimension("sym", "string", "sym")
USER = Dimension("user", "int", "user")
COUNT = Statistic("count(*)", "bigint", "count(*)", "sum({})", "sum({})")
MANY = 4096


def need(slide: int, length: int | None = None, by=(SYM,), where: str | None = None) -> Need:
    window = Hopping(timedelta(seconds=length or slide), timedelta(seconds=slide))
    predicate = EVERYTHING
    if where is not None:
        predicate = factor(parse_one(where, dialect="spark"), lambda _: "int")
    return Need(AggregateClass(1, window, tuple(by), predicate, False), (COUNT,))


def sampled(needs, seed: int = 0, **sizes: int) -> Profile:
    """A profile in which each dimension has so many values and bits are fair coins."""
    dice = np.random.default_rng(seed)
    atoms = {a.column: a for p in plan_nodes(needs) for a in p.node.columns}
    values = {name: dice.integers(0, sizes.get(atom.key, 2), MANY) for name, atom in atoms.items()}
    return profile_of(atoms.values(), values)


# counts


def test_a_curve_is_unbiased_within_the_sample_and_close_beyond_it():
    dice = np.random.default_rng(1)
    weights = 1 / np.arange(1, 3001) ** 1.2
    draws = dice.choice(3000, size=200_000, p=weights / weights.sum())
    curve = measured(np.bincount(draws[:MANY]))
    for rows, within in ((64, 0.05), (1024, 0.05), (4096, 0.05), (32_768, 0.25)):
        seen = np.mean([len(set(draws[i : i + rows])) for i in range(0, 200_000 - rows, 20_000)])
        assert curve.at(rows) == pytest.approx(seen, rel=within), rows


def test_a_curve_never_has_more_values_than_rows_and_is_concave():
    for counts in ([1] * 500, [500], [3, 3, 1, 1, 90], range(1, 40)):
        values = measured(list(counts)).values
        slopes = np.diff(values) / np.diff(GRID)
        assert (values <= GRID + 1e-9).all()
        assert (np.diff(slopes) <= 1e-9).all() and (slopes >= -1e-12).all()


def test_a_profile_is_kept_as_bytes_and_stands_in_for_other_constants():
    needs = [need(10, where="qty > 3"), need(10, where="qty > 8")]
    profile = sampled(needs, sym=50)
    again = load_profile(profile.dump())
    assert (
        again.curve([SYM]).at(10_000) == profile.curve([SYM]).at(10_000) == pytest.approx(50, 0.1)
    )
    other = plan_nodes([need(10, where="qty > 5")])[0].node.columns
    assert again.curve(other).at(10_000) <= 110  # the same expression: two or three ranks
    assert load_profile(None).curve([SYM, USER]).at(1e9) == pytest.approx(1e6, rel=0.01)


# even panes


def test_even_panes_are_those_of_the_engine():
    dice = random.Random(3)
    space = EvenSpace()
    for _ in range(200):
        windows = [
            Hopping(timedelta(seconds=dice.randint(60, 150)), timedelta(seconds=dice.randint(1, 60)),
                    timedelta(seconds=dice.randint(0, 20)))
            for _ in range(2)
        ]  # fmt: skip
        queries = [
            Query(str(i), int(w.slide.total_seconds()), int(w.length.total_seconds()),
                  int(w.offset.total_seconds()) % int(w.slide.total_seconds()))
            for i, w in enumerate(windows)
        ]  # fmt: skip
        one, other = (panes_of(w) for w in windows)
        for query, panes in zip(queries, (one, other), strict=True):
            width, offset = even_panes(query.classes)
            assert (width * SECOND, offset * SECOND) == (panes.width, panes.offset)
        rows = [space.row(query.classes) for query in queries]
        width, offset = space.join(*rows).tolist()
        assert Panes(width * SECOND, offset * SECOND) == joined(one, other)


def engine_stream(rows: float, span: float) -> Stream:
    kinds = [
        Kind("a", frozenset("x"), filling(50)),
        Kind("b", frozenset("xy"), filling(5_000)),
        Kind("c", frozenset(), ONE),
    ]
    return Stream(rows / span, Kinds(kinds), span)


def engine_queries(dice: random.Random, count: int) -> list[Query]:
    slides = (1, 7, 10, 11, 60, 90)
    return [
        Query(f"q{i:02}", s := dice.choice(slides), s * dice.randint(1, 9),
              dimensions=frozenset(dice.choice("abc")), reads=dice.choice((0.0, 20.0)))
        for i in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [10, 1_000, 100_000, 3_000_000])
def test_with_the_engines_costs_no_plan_beats_the_exhaustive_one(rows):
    model, dice = EngineCosts(), random.Random(rows)
    for span in (5.0, 600.0):
        queries, stream = engine_queries(dice, 7), engine_stream(rows, span)
        best = weave_cost(exhaustive(queries, stream, model), queries, stream, model)
        found = improved(queries, stream, model)
        assert covers_once(found, queries)
        cost = weave_cost(found, queries, stream, model)
        assert best <= cost * (1 + 1e-9)
        for other in (no_share(queries), shared(queries)):
            assert cost <= weave_cost(other, queries, stream, model) * (1 + 1e-9)


def test_finer_panes_and_more_nodes_never_cost_less():
    stream, model = engine_stream(50_000, 60.0), EngineCosts()
    numbers = [stream.counts.number(frozenset(names)) for names in ("a", "ab", "abc")]
    queries = engine_queries(random.Random(1), 3)
    for number in numbers:
        costs = [model.tree(load_of(queries, rate, number), stream) for rate in (0.01, 0.1, 1, 10)]
        assert costs == sorted(costs)
    at_one = [model.tree(load_of(queries, 1.0, number), stream) for number in numbers]
    assert at_one == sorted(at_one)


def test_a_standing_plan_is_gone_on_from():
    stream, model = engine_stream(50_000, 60.0), EngineCosts()
    queries = engine_queries(random.Random(5), 12)
    standing = no_share(queries[:8])
    woven = IncrementalWeave(queries[:8], stream, model, plan=standing, weaver=improved)
    assert woven.plan == standing
    for query in queries[8:]:
        woven.add(query)
    assert covers_once(woven.plan, queries)


# the network


def test_the_work_of_a_plan_is_the_work_of_its_nodes():
    """The optimiser's model and the count over real nodes agree where they look at the same."""
    needs = [need(10, 40), need(10, 40, by=(SYM, USER)), need(10, 40, by=())]
    measures = Measures(50_000, 60 * SECOND, sampled(needs, sym=20, user=900))
    weaving = Weaving(measures)
    kinds = weaving.kinds(needs)
    queries, stream = weaving.queries(needs, kinds), weaving.stream(needs, kinds)
    number = stream.counts.number(frozenset().union(*(q.dimensions for q in queries)))
    predicted = work_of(load_of(queries, 1 / (10 * SECOND), number), stream)
    planned = plan_nodes(needs, weaving)
    (counted,) = work_by_tree(
        [Placed(i, p.node, p.parent) for i, p in enumerate(planned)], measures
    ).values()
    for name in ("tree", "node", "row", "expand", "step", "cell"):
        assert counted[name] == pytest.approx(float(predicted[name]), rel=1e-6), name


def test_the_smallest_measured_parent_feeds_a_node():
    """By guesses sym and user are alike; the sample says that sym has 5 values."""
    by_sym, by_user, by_none = need(10, by=(SYM,)), need(10, by=(USER,)), need(10, by=())
    profile = sampled([by_sym, by_user], sym=5, user=3000)
    planned = plan_nodes([by_user, by_sym, by_none], Weaving(Measures(profile=profile)))
    none = next(p for p in planned if not p.node.columns)
    assert planned[none.parent].node.columns == (SYM,)


def odd(count: int) -> list[Need]:
    return [need(60, where=f"qty % {7 + i} > {i}") for i in range(count)]


def test_predicates_that_split_the_rows_are_kept_apart_and_few_groups_share():
    needs = odd(16)
    few = Measures(100_000, 60 * SECOND, sampled(needs, sym=3))
    nodes = {p.node for p in plan_nodes(needs, Weaving(few))}
    assert 1 < len(nodes) < 16, "2¹⁶ signatures in one node, or 16 passes over the rows, cost more"
    alike = np.random.default_rng(0).integers(0, 2, MANY)  # all bits are the same bit
    atoms = {a.column: a for p in plan_nodes(needs) for a in p.node.columns}
    same = profile_of(atoms.values(), dict.fromkeys(atoms, alike))
    nodes = {p.node for p in plan_nodes(needs, Weaving(replace(few, profile=same)))}
    assert len(nodes) == 1, "bits that say the same make no more cells"
    slow = replace(few, rows=200.0, costs=replace(BatchCosts(), node=0.0))
    wide = replace(slow, profile=sampled(needs, sym=3000))
    assert len({p.node for p in plan_nodes(needs, Weaving(wide))}) >= 1


def test_one_more_predicate_leaves_the_others_where_they_are():
    needs = odd(24)
    weaving = Weaving(Measures(100_000, 60 * SECOND, sampled([*needs, *odd(25)], sym=20)))
    network = live_network(needs, weaving)
    assert 1 < len(network.nodes) < 24
    placement = place(network, [odd(25)[24]], 2, True, weaving)
    assert len(placement.made) == 1 and len(placement.retired) <= 1


def test_every_class_finds_its_columns_in_its_node():
    needs = [*odd(9), need(60), need(30, by=(), where="qty > 3 AND sym = 1")]
    planned = plan_nodes(needs, Weaving(Measures(80_000, 60 * SECOND)))
    conditions = {key: (p, c) for p in planned for key, c in p.conditions.items()}
    assert set(conditions) == {n.key for n in needs}
    for each in needs:
        item, condition = conditions[each.key]
        names = set(item.node.column_names())
        assert set(condition.columns) | {d.column for d in each.value.dimensions} <= names
        assert len(condition.columns) >= len(signature_of(each.value.predicate)) > 0 or (
            each.value.predicate is EVERYTHING
        )


def test_a_coarse_tree_is_fed_by_a_finer_one_where_cells_are_few():
    """Large groups at a minute would be cut sixty times as fine; the small ones feed their own."""
    needs = [need(1, 1, by=(SYM,)), need(3600, by=(SYM,))]
    fast = Measures(5_000_000, 60 * SECOND, sampled(needs, sym=20))
    planned = plan_nodes(needs, Weaving(fast))
    assert sum(p.parent is None for p in planned) == 1, "the rows are folded once"
    apart = plan_nodes(needs, Weaving(fast, forced="none"))
    assert plan_cost(planned, fast) < plan_cost(apart, fast)
    wide = plan_nodes([need(7, by=(USER,)), need(11, by=(USER,))],
                      Weaving(Measures(5_000_000, 60 * SECOND, sampled(needs, sym=20))))  # fmt: skip
    assert all(p.conditions for p in wide), "a base as large as the rows feeds nobody"


FED = {"tree": 5000.0, "row": 1.0, "expand": 1.0, "step": 1e-4, "cell": 5.0}  # rows dear, cells too


def test_where_rows_and_cells_are_dear_trees_are_apart_and_fed():
    needs = [need(1, 1), need(7, 28), need(60, 600)]
    measures = Measures(100_000, 60 * SECOND, sampled(needs, sym=20), BatchCosts(**FED))
    planned = plan_nodes(needs, Weaving(measures))
    assert len({p.node.panes for p in planned if p.conditions}) == 3
    assert sum(p.parent is None for p in planned) == 1
    for item in planned:
        if item.parent is not None:
            fine, coarse = planned[item.parent].node.panes, item.node.panes
            assert joined(fine, coarse) == fine
            assert set(item.node.statistics) <= set(planned[item.parent].node.statistics)


@pytest.mark.parametrize("seed", range(4))
def test_what_feeding_costs_is_what_the_whole_plan_costs(seed: int):
    """Trees are costed one by one as they are fed; together that is the cost of the network."""
    dice = random.Random(seed)
    slides = [dice.choice((1, 2, 6, 12, 60, 61, 120, 360)) for _ in range(12)]
    needs = [
        need(s, s * dice.randint(1, 5), by=dice.choice(((), (SYM,), (SYM, USER)))) for s in slides
    ]
    costs = BatchCosts(tree=dice.choice((1.0, 400.0)), step=dice.choice((1e-4, 1e-2)))
    measures = Measures(200_000, 600 * SECOND, costs=costs)
    nodes = plan_nodes(needs, Weaving(measures, forced="none"))
    nodes = tuple(replace(p, node=replace(p.node, apart=0), parent=None) for p in nodes)
    trees = Trees(nodes, measures)
    for panes in sorted(trees.members, key=lambda each: -each.width):
        trees.feed(panes)
    placed = [Placed(i, p.node, trees.parents[i], p.eager) for i, p in enumerate(nodes)]
    assert trees.total == pytest.approx(network_cost(placed, measures))
    assert trees.total <= plan_cost(nodes, measures)


def test_a_base_that_nobody_asked_for_feeds_trees_where_it_pays():
    needs = [need(s, 40 * s, by=()) for s in (4, 6)]
    dear = replace(BatchCosts(), step=0.05, cell=0.2, tree=300.0)
    measures = Measures(3_000_000, 600 * SECOND, costs=replace(dear, row=1e-3))
    planned = plan_nodes(needs, Weaving(measures))
    assert plan_cost(planned, measures) <= plan_cost(
        plan_nodes(needs, Weaving(measures, forced="shared")), measures
    )


def live_network(needs, weaving: Weaving) -> Network:
    """A network as one registration makes it."""
    placement = place(Network(1), needs, 1, True, weaving)
    ids = {made.id: i for i, made in enumerate(placement.made, 1)}
    nodes = {
        ids[m.id]: replace(m, id=ids[m.id], parent_id=ids.get(m.parent_id)) for m in placement.made
    }
    classes = {
        n.key: LiveClass(
            i, n.value,
            (replace(placement.routes[n.key], node_id=ids[placement.routes[n.key].node_id]),),
            None, frozenset(n.statistics),
        )
        for i, n in enumerate(needs, 1)
    }  # fmt: skip
    return Network(1, nodes, classes)


def test_a_new_query_is_woven_into_the_trees_that_stand():
    profile = sampled([need(7, by=(USER,))], user=3000)
    cheap = replace(BatchCosts(), tree=5.0, row=1e-5)
    fast = Weaving(Measures(1_000_000, 60 * SECOND, profile, cheap))
    network = live_network([need(7, by=(USER,)), need(60, by=(USER,))], fast)
    before = set(homes_of(network).values())
    assert len(before) == 2, "as many cells as rows: a finer pane for all costs more"
    reads = place(network, [need(120, by=(USER,))], 2, True, fast)
    assert not reads.made, "the panes of a minute serve two minutes"
    placement = place(network, [need(14, by=(USER,))], 2, True, fast)
    assert not placement.made and not placement.moved, "and seven seconds fourteen"
    placement = place(network, [need(121, 1210, by=(USER,))], 2, True, fast)
    assert {m.node.panes.width for m in placement.made} == {121 * SECOND}
    assert not placement.moved, "the others stay where they are"


@pytest.mark.parametrize("seed", range(6))
def test_lazy_classes_that_stand_are_woven_as_one_and_it_makes_no_difference(seed: int):
    dice = random.Random(seed)
    bys, slides = ((), (SYM,), (SYM, USER)), (1, 5, 7, 10, 12, 35, 60)

    def drawn() -> Need:
        slide = dice.choice(slides)
        found = need(slide, slide * dice.randint(1, 30), by=dice.choice(bys))
        return replace(found, is_eager=dice.random() < 0.3)

    needs = list({n.key: n for n in (drawn() for _ in range(30))}.values())
    costs = BatchCosts(tree=dice.choice((1.0, 90.0)), part=dice.choice((1.0, 230.0)))
    weaving = Weaving(Measures(100_000, 300 * SECOND, costs=costs))
    kinds, old = weaving.kinds(needs), needs[:-3]
    homes = weaving.homes(old, kinds, {})
    trees: dict = {}
    for each in old:
        trees.setdefault(homes[each.key], []).append(each.key)
    queries = weaving.queries(needs, kinds)
    model, stream = EngineCosts(costs), weaving.stream(needs, kinds)
    one_by_one = IncrementalWeave(
        queries[: len(old)], stream, model, plan=tuple(map(tuple, trees.values()))
    )
    for query in queries[len(old) :]:
        one_by_one.add(query)
    plan = weaving.plan(needs, kinds, homes)
    assert covers_once(plan, queries)
    assert weave_cost(plan, queries, stream, model) == pytest.approx(one_by_one.cost)


def test_a_switch_moves_classes_by_tick_and_fills_nothing():
    slow = Weaving(Measures(100, 60 * SECOND))
    network = live_network([need(7), need(11), need(60)], slow)
    assert len(set(homes_of(network).values())) == 1
    plan = plan_nodes(list(needs_of(network).values()), replace(slow, forced="none"))
    placement = switched(network, plan, 9)
    assert len(placement.moved) == 3 and not placement.whole
    assert all(r.from_tick == 10 and r.to_tick is None for r in placement.moved.values())
    assert all(m.born_tick == 10 for m in placement.made)
    assert placement.retired == set(network.nodes)
    again = switched(network, plan_nodes(list(needs_of(network).values()), slow), 9)
    assert not (again.moved or again.made or again.retired), "the plan that stands changes nothing"


def test_a_node_that_lacks_the_past_serves_its_readers_but_nobody_new():
    node = plan_nodes([need(60)])[0].node
    young = LiveNode(1, 1, node, None, born_tick=5)
    key = need(60).key
    old = LiveClass(1, need(60).value, (Route(1, Condition(), 6, None),), None, frozenset({COUNT}))
    network = Network(1, {1: young}, {key: old})
    same = place(network, [need(60, 120)], 9, can_refill=False)
    assert any(m.node.panes == node.panes for m in same.made), "filled from what is retained"
    other = place(network, [need(60, by=(USER,))], 9, can_refill=False)
    assert 1 not in other.retired and key not in other.moved


def test_cumulating_windows_and_offsets_find_homes_that_fit():
    windows = [
        Cumulating(timedelta(minutes=5), timedelta(seconds=10)),
        Hopping(timedelta(seconds=20), timedelta(seconds=15), timedelta(seconds=5)),
    ]
    needs = [Need(AggregateClass(1, w, (SYM,), EVERYTHING, False), (COUNT,)) for w in windows]
    for forced in (None, "none", "shared", "paper", "random:3"):
        for item in plan_nodes(needs, Weaving(forced=forced)):
            for each in needs:
                if each.key in item.conditions:
                    assert item.node.panes.fits(each.value.window)


# costs


def test_fitting_finds_the_costs_behind_the_batches_and_shrugs_at_odd_ones():
    dice = np.random.default_rng(4)
    true = BatchCosts(200, 0.4e-3, 90, 9, 0.5e-3, 0.2e-3, 0.6e-3, 2e-3, 1e-3, 1e-3)
    seen = []
    for _ in range(60):
        work = {"batch": 1.0, "tree": float(dice.integers(1, 6)), "node": float(dice.integers(1, 20)),
                "row": float(dice.integers(1, 10) * 20_000), "cell": float(dice.integers(1, 60) * 1000)}  # fmt: skip
        work |= {"expand": work["row"] * dice.integers(0, 4), "step": work["cell"] * 2.5}
        seen.append(Observation(work, float(true.of(work)) * dice.normal(1, 0.03)))
    seen[7] = replace(seen[7], ms=seen[7].ms * 9)  # somebody compiled something
    found = fit(seen, BatchCosts(), trust=0.01)
    assert np.median(np.abs(np.array(errors(seen, found)) - 1)) < 0.05
    assert found.tree == pytest.approx(90, rel=0.4) and found.row == pytest.approx(0.5e-3, rel=0.4)
    ratio = BatchCosts().read / BatchCosts().answer
    assert found.read / found.answer == pytest.approx(ratio), "what was not seen stays as believed"


def test_one_plan_run_for_long_scales_its_costs_and_keeps_no_cost_below_zero():
    work = {"batch": 1.0, "tree": 2.0, "row": 50_000.0, "cell": 9_000.0}
    slow = [Observation(work, 3 * float(BatchCosts().of(work)))] * 20
    found = fit(slow, BatchCosts(), trust=8.0)
    assert np.median(errors(slow, found)) == pytest.approx(1, abs=0.1)
    assert found.expand / found.read == pytest.approx(BatchCosts().expand / BatchCosts().read)
    assert all(getattr(fit([Observation(work, 0.01)], BatchCosts()), n) > 0 for n in found.names())


def test_a_network_costs_what_its_trees_cost():
    needs = [need(7, 70), need(60, 600, by=(USER,)), need(60, where="qty > 3")]
    measures = Measures(10_000, 60 * SECOND)
    planned = plan_nodes(needs, Weaving(measures, forced="none"))
    nodes = [Placed(i, p.node, p.parent, p.eager) for i, p in enumerate(planned)]
    each = [network_cost([n for n in nodes if n.node.apart == k], measures) for k in (1, 2, 3)]
    assert network_cost(nodes, measures) == pytest.approx(sum(each))
