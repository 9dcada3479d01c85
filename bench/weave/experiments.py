"""The experiments of Weave Share §7 and §8.4, one function each; rows are plain dicts."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator

from bench.weave.workload import drawn
from weft.optimizer.weave.baselines import exhaustive, insert_then_weave, no_share, random_plan
from weft.optimizer.weave.cost import CostModel, PaperCosts, SparkCosts, Stream
from weft.optimizer.weave.factor import with_base
from weft.optimizer.weave.forest import Forest, bundles_of
from weft.optimizer.weave.greedy import Lookup, weave_share, woven
from weft.optimizer.weave.incremental import IncrementalWeave
from weft.optimizer.weave.local import improve, improved, local_search
from weft.optimizer.weave.plan import PAPER, Plan, plan_cost
from weft.optimizer.weave.textbook import VARIANTS, work_of
from weft.optimizer.weave.windows import Query

Row = dict[str, object]
Tick = Callable[[], None]  # tells the progress display that one step is done


def shared_cost(queries: list[Query], stream: Stream, model: CostModel = PAPER) -> float:
    return Forest([bundles_of(queries)], stream, model).total


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


def policies(count: int, rate: float, seed: int) -> Row:
    """Figures 4 and 5: what each algorithm's plan costs, and the processor time to find it."""
    queries, stream = drawn(count, seed=seed), Stream(rate)
    forest = woven(queries, stream)
    iterations = count - len(forest)
    start = no_share(queries)
    finders: dict[str, Callable[[], Plan]] = {
        "No Share": lambda: start,
        "Random": lambda: random_plan(queries, seed),
        "Insert-then-Weave": lambda: insert_then_weave(queries, stream),
        "LS-NS 10x": lambda: local_search(
            queries, stream, start=start, iterations=10 * iterations, seed=seed
        ),
        "Weave Share": lambda: weave_share(queries, stream),
        "Weave Share, improved": lambda: improved(queries, stream),
    }
    row: Row = {"queries": count, "rate": rate, "Shared": shared_cost(queries, stream)}
    for name, find in finders.items():
        began = time.process_time()
        plan = find()
        row[f"{name} cpu s"] = time.process_time() - began
        row[name] = plan_cost(plan, queries, stream)
    row["with a base"] = with_base(queries, stream, weaver=improved).cost
    return row


def local_searches(count: int, rate: float, seed: int) -> list[Row]:
    """Local search from both starts with each bound."""
    queries, stream = drawn(count, seed=seed), Stream(rate)
    forest = woven(queries, stream)
    rows: list[Row] = [{"algorithm": "Weave Share", "cost": forest.total}]
    starts = {"NS": no_share(queries), "R": random_plan(queries, seed)}
    for name, start in starts.items():
        for times in (2, 5, 10):
            bound = times * (count - len(forest))
            plan = local_search(queries, stream, start=start, iterations=bound, seed=seed)
            cost = plan_cost(plan, queries, stream)
            rows.append({"algorithm": f"LS-{name} {times}x", "cost": cost})
    improve(forest)
    return [*rows, {"algorithm": "Weave Share, improved", "cost": forest.total}]


def against_shared(
    count: int,
    rate: float,
    seeds: range,
    *,
    most_overlap: float = 50.0,
    skew: float = 0.6,
) -> Row:
    """Figures 6 to 10: cost normalised to Shared, and how many trees; means over the seeds."""
    ratios, better, trees = [], [], []
    for seed in seeds:
        queries = drawn(count, skew=skew, most_overlap=most_overlap, seed=seed)
        stream = Stream(rate)
        whole = shared_cost(queries, stream)
        forest = woven(queries, stream)
        ratios.append(forest.total / whole)
        trees.append(len(forest))
        better.append(improve(forest).total / whole)
    return {
        "queries": count,
        "rate": rate,
        "most overlap": most_overlap,
        "skew": skew,
        "normalised": mean(ratios),
        "below shared %": 100 * (1 - mean(ratios)),
        "improved %": 100 * (1 - mean(better)),
        "trees": mean(trees),
    }


def optimality(rate: float, count: int, seeds: range) -> Row:
    """Footnote 1: how often the plan is a cheapest one, and how far off it is otherwise."""
    ratios, better = [], []
    for seed in seeds:
        queries, stream = drawn(count, seed=seed), Stream(rate)
        best = plan_cost(exhaustive(queries, stream), queries, stream)
        ratios.append(plan_cost(weave_share(queries, stream), queries, stream) / best)
        better.append(plan_cost(improved(queries, stream), queries, stream) / best)
    return {
        "rate": rate,
        "queries": count,
        "workloads": len(seeds),
        "optimal %": 100 * mean(ratio < 1 + 1e-9 for ratio in ratios),
        "worst excess %": 100 * (max(ratios) - 1),
        "improved: optimal %": 100 * mean(ratio < 1 + 1e-9 for ratio in better),
    }


def incremental(
    start: int, end: int, rate: float, tolerances: list[float], tick: Tick
) -> list[Row]:
    """Figure 11: comparisons against the average error, for each tolerance."""
    queries, stream = drawn(end, seed=1), Stream(rate)
    fresh = {}
    for count in range(start + 1, end + 1):
        fresh[count] = woven(queries[:count], stream).total
        tick()
    cases = [(tolerance, reach) for reach in (None, math.inf) for tolerance in tolerances]
    return [_follow(queries, start, stream, *case, fresh) for case in cases]


def _follow(
    queries: list[Query],
    start: int,
    stream: Stream,
    tolerance: float,
    reach: float | None,
    fresh: dict[int, float],
) -> Row:
    comparisons = 0

    def counted(queries: Iterable[Query], stream: Stream, model: CostModel) -> Plan:
        nonlocal comparisons
        table = Lookup(Forest([[b] for b in bundles_of(queries)], stream, model))
        while table.merge_best() is not None:
            pass
        comparisons += table.benefits
        return table.forest.plan

    weave = IncrementalWeave(
        queries[:start], stream, tolerance=tolerance, reach=reach, weaver=counted
    )
    comparisons, before = 0, weave.reconstructions
    errors = []
    for query in queries[start:]:
        if weave.add(query).is_due:
            weave.reconstruct()
        errors.append(weave.cost / fresh[len(weave.queries)] - 1)
    return {
        "rule": "Eq. 6 alone" if reach else "Eq. 6, and reach",
        "tolerance": None if math.isinf(tolerance) else tolerance,
        "comparisons": comparisons + weave.benefits,
        "error %": 100 * mean(errors),
        "largest error %": 100 * max(errors),
        "reconstructions": weave.reconstructions - before,
    }


def optimisations(count: int) -> list[Row]:
    """Figure 14: the work of each variant; skew 0.7, overlap up to 10, 100 rows per second."""
    queries = drawn(count, skew=0.7, most_overlap=10.0)
    rows: list[Row] = []
    for name, work in zip(VARIANTS, work_of(queries, Stream(100.0)).values(), strict=True):
        before = rows[-1]["comparisons"] if rows else work.comparisons
        rows.append(
            {
                "variant": name,
                "benefits": work.benefits,
                "comparisons": work.comparisons,
                "step": before / work.comparisons,
                "together": (rows[0]["comparisons"] if rows else before) / work.comparisons,
            }
        )
    return rows


def speed(count: int, added: int, any_slide: bool) -> Iterator[Row]:
    """Processor time to weave from scratch, and to add or delete one query."""
    queries, stream = drawn(count + added, any_slide=any_slide), Stream(300.0)
    kind = "any integer" if any_slide else "templates"
    base = {"slides": kind, "queries": count}
    began = time.process_time()
    forest = woven(queries[:count], stream)
    took = time.process_time() - began
    yield {**base, "what": "Weave Share from scratch", "cpu ms": 1e3 * took}
    began = time.process_time()
    improve(forest)
    more = time.process_time() - began
    yield {**base, "what": "… and improved", "cpu ms": 1e3 * (took + more)}
    weave = IncrementalWeave(queries[:count], stream, tolerance=math.inf)
    for name, change, over in (
        ("add one query, median", weave.add, queries[count:]),
        ("delete one query, median", weave.delete, [q.id for q in queries[:added]]),
    ):
        times = []
        for one in over:
            began = time.process_time()
            change(one)
            times.append(time.process_time() - began)
        yield {**base, "what": name, "cpu ms": 1e3 * statistics.median(times)}


def models(count: int, rate: float, seed: int = 1) -> Row:
    """The paper's costs against Spark's: how many trees each would make, and at what price."""
    queries, stream = drawn(count, seed=seed), Stream(rate, batch=10.0)
    paper, spark = PaperCosts(), SparkCosts()
    by_paper, by_spark = improved(queries, stream, paper), improved(queries, stream, spark)

    def extra(plan: Plan, best: Plan, model: CostModel) -> float:
        cost = plan_cost(plan, queries, stream, model)
        return 100 * (cost / plan_cost(best, queries, stream, model) - 1)

    return {
        "queries": count,
        "rate": rate,
        "trees by paper": len(by_paper),
        "trees by Spark": len(by_spark),
        "paper's plan on Spark +%": extra(by_paper, by_spark, spark),
        "Spark's plan by paper +%": extra(by_spark, by_paper, paper),
    }
