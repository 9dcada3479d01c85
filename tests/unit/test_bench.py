"""The benchmarks: their words, their generators, and tiny runs from end to end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench/ is no part of the package

from bench import __main__ as benchmarks
from bench.argus import queries as argus_queries
from bench.argus.data import DATASETS, load
from bench.argus.stage import groups_and_rows, over
from bench.plot import chart
from bench.windows import options, targets
from bench.windows.check import Oracle, newest_end
from bench.windows.queries import generate, generate_of_classes, script
from bench.windows.trades import START, Trades, rows, write


def test_a_name_comes_first_and_its_options_follow():
    assert benchmarks.split(["windows", "--rows", "5"]) == (["windows"], ["--rows", "5"])
    assert benchmarks.split(["latency", "pipeline"]) == (["latency", "pipeline"], [])
    assert benchmarks.split(["--help"]) == ([], ["--help"])


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit):
        benchmarks.main(["nonsense"])
    assert (
        "there are latency, pipeline, windows, weave, plans, argus, psoup"
        in capsys.readouterr().err
    )


def test_without_a_name_the_benchmarks_are_listed(capsys):
    benchmarks.main([])
    text = capsys.readouterr().out
    assert all(name in text for name in benchmarks.BENCHMARKS)


def test_841_of_1000_plain_queries_are_distinct():
    assert len(set(generate(1000))) == 841


def test_more_queries_begin_with_the_same_ones():
    assert generate(50) == generate(1000)[:50]
    assert generate(50, "mixed") == generate(200, "mixed")[:50]


def test_every_second_mixed_query_has_a_bound_on_the_quantity():
    found = [query.at_least for query in generate(100, "mixed")]
    assert all(bound is None for bound in found[::2])
    assert {bound % 100 for bound in found[1::2]} == {0}


def test_lengths_fit_the_slides_and_keys_take_turns():
    found = generate(300)
    assert all(q.slide <= q.length <= 10 * q.slide and q.length % 5 == 0 for q in found)
    assert [q.key for q in found[:4]] == ["sym", "venue", None, "sym"]


def test_many_queries_of_few_classes():
    found = generate_of_classes(1000, 200)
    assert len({(q.slide, q.length, q.key) for q in found}) == 200
    assert len({q.select() for q in found}) == 800  # four finishes


def test_a_script_registers_each_query_with_its_answers():
    text = script(generate(2), "eager")
    assert text.count("WITH (answers = 'eager')") == 2
    assert text.startswith("CREATE CONTINUOUS QUERY q0 ")


def test_trades_depend_on_the_number_of_their_file_alone():
    assert rows(3, 100, 100).equals(rows(3, 100, 100))
    assert not rows(3, 100, 100)["price"].equals(rows(4, 100, 100)["price"])
    times = rows(3, 100, 100)["ts"].to_pylist()
    assert times == sorted(times)
    assert (times[0] - START).total_seconds() == 0.3


def test_trades_are_written_once_in_ascending_age(tmp_path):
    trades = Trades(tmp_path, batch_rows=100, rows=250)
    write(trades)
    assert trades.sizes == [100, 100, 100, 50]
    first = trades.path(0).read_bytes()
    write(trades)
    assert trades.path(0).read_bytes() == first
    ages = [path.stat().st_mtime for path in (*trades.warming, *trades.timed)]
    assert ages == sorted(set(ages))


def test_the_oracle_counts_the_newest_closed_window(tmp_path):
    trades = Trades(tmp_path, batch_rows=20_000, rows=20_000)
    write(trades)
    oracle = Oracle([*trades.warming, *trades.timed])
    query = next(q for q in generate(100) if q.slide == 10 and q.key is None and q.length > 40)
    found = oracle.digest(query)
    assert found.end == newest_end(query, oracle.clock)
    assert (found.end - START).total_seconds() <= 40
    assert found.count == (found.end - START).total_seconds() * 1000


def test_words_become_runs():
    words = ["--queries", "1000,1,10", "--against", "spark", "--mix", "both", "--answers", "both"]
    found = options.main_runs(options.parse(words), Path("/nowhere"))
    assert [s.queries for s in found if s.engine == "spark"] == [1, 10, 32]
    plain = [s.queries for s in found if s.engine == "weft" and s.mix == "plain"]
    assert plain == [1, 1, 10, 10, 1000, 1000]
    assert [s.queries for s in found if s.mix == "mixed"] == [1000, 1000]


def test_flat_and_classes_are_experiments_of_their_own():
    arguments = options.parse(["--batches", "100", "--queries", "7"])
    assert options.main_runs(arguments, Path("/nowhere")) == []
    (spec,) = options.flat_runs(arguments, Path("/nowhere"))
    assert len(spec.trades.sizes) == 100
    everything = options.parse(["--all"])
    assert options.main_runs(everything, Path("/nowhere"))
    few, many, *_ = options.class_runs(everything, Path("/nowhere"))
    assert (few.queries, many.queries, few.classes) == (1_000, 10_000, 200)


def test_growth_is_seen_behind_a_compiler_that_warms_up():
    falling_then_rising = [3.0] * 12 + [1.0] * 40 + [1.5] * 46
    found = targets.flatness([9.0, *falling_then_rising])
    assert found["ratio"] == 0.5
    assert found["growth"] == 1.5


def test_a_target_is_met_only_under_its_own_conditions():
    def figure(queries: int, seconds: float, strategy: str) -> dict:
        return {
            "engine": "weft", "answers": "lazy", "mix": "plain", "queries": queries,
            "rows": 2_000_000, "seconds": seconds, "read_ms_median_500_groups": 5.0,
            "strategies": {strategy: 1},
        }  # fmt: skip

    def verdict(strategy: str) -> bool | None:
        runs = [figure(1, 4.0, strategy), figure(1000, 4.4, strategy)]
        return targets.judge(runs, [], [])[0].is_met

    assert verdict("shared, lazy") is True
    assert verdict("shared, eager") is None  # the option was not heeded
    assert verdict("recompute, per window") is None


def test_a_chart_has_every_series_in_its_legend():
    text = chart("t", {"a": [(1, 2), (100, 3)], "b": [(10, 0)]}, x="n", y="s").plain
    assert "● a" in text
    assert "▲ b" in text


@pytest.mark.slow
def test_windows_from_end_to_end(tmp_path):
    from bench import windows

    path = tmp_path / "figures.json"
    windows.run([
        "--rows", "20000", "--batch-rows", "20000", "--queries", "1,3",
        "--against", "spark", "--native-max", "1", "--json", str(path),
    ])  # fmt: skip
    found = json.loads(path.read_text())
    assert found["failed"] == []
    assert found["rows"] == 20_000
    kinds = [(run["engine"], run["queries"]) for run in found["runs"]]
    assert kinds == [("limit", 0), ("weft", 1), ("weft", 3), ("spark", 1)]
    assert all(run["seconds"] > 0 and run["rows_per_second"] > 0 for run in found["runs"])
    assert all(run["checked"] == run["queries"] for run in found["runs"][1:])
    assert found["runs"][1]["read_ms_median"] > 0


@pytest.mark.parametrize("name", ["fed", "med"])
def test_argus_queries_are_distinct_and_begin_alike(name):
    found = argus_queries.generate(DATASETS[name], 450)
    assert len(set(found)) == 450
    assert found[:50] == argus_queries.generate(DATASETS[name], 50)


@pytest.mark.parametrize("name", ["fed", "med"])
def test_argus_rows_are_generated_in_order_where_there_is_no_file(name, tmp_path):
    dataset = DATASETS[name]
    table, origin = load(dataset, 60_000, tmp_path)
    assert (origin, table.num_rows) == ("generated", 60_000)
    times = table["ts"].to_pylist()
    assert times == sorted(times)
    assert table.equals(load(dataset, 60_000, tmp_path)[0])
    assert table.column_names == [*(column for column, _ in dataset.columns), "ts"]


def test_every_argus_query_runs_over_its_rows(tmp_path):
    for name, dataset in DATASETS.items():
        duck = over(name, load(dataset, 5_000, tmp_path)[0])
        for sql in argus_queries.generate(dataset, 40):
            groups, selected = groups_and_rows(duck, sql)
            assert groups <= selected <= 5_000


def test_argus_takes_the_papers_sizes_unless_told():
    from bench.argus.options import parse, sizes_for

    assert sizes_for(parse([]), "med").history == 600_000
    assert sizes_for(parse(["--queries", "9"]), "fed").queries == 9
    assert sizes_for(parse(["--quick", "--sample", "1"]), "fed").sample == 1


def test_a_sample_has_small_and_large_queries():
    from bench.argus.incremental import spaced, steps

    assert spaced(list(range(100)), 4) == [12, 37, 62, 87]
    assert spaced([1, 2], 5) == [1, 2]
    assert steps(350, 4) == [87, 175, 262, 350]


@pytest.mark.slow
def test_argus_compares_what_stands_with_an_oracle(tmp_path, spark):
    from bench.argus.incremental import together
    from bench.argus.options import Sizes
    from bench.argus.stage import ArgusStage, Stream

    sizes = Sizes(2_000, 100, 2, repeat=1)
    rows, _ = load(DATASETS["fed"], 3_000, tmp_path)
    stage = ArgusStage(tmp_path)
    try:
        stream = Stream(DATASETS["fed"], rows, 2_000)
        queries = argus_queries.generate(DATASETS["fed"], 2)
        found = together(stage, stream, queries, sizes, lambda _: None)
    finally:
        stage.close()
    assert found["checked"] == 2
    assert found["seconds"] > 0


def test_plans_are_judged_by_the_best_of_the_others():
    from bench import plans
    from bench.plans.workloads import WORKLOADS, batch

    assert len(WORKLOADS) >= 6 and len({w.name for w in WORKLOADS}) == len(WORKLOADS)
    assert batch(WORKLOADS[0], 1, 500).num_rows == 500
    times = {"chosen": [100.0], "no share": [300.0], "shared": [98.0], "paper": [150.0]}
    described = {plan: {"trees": 1, "runs": plan} for plan in plans.PLANS}
    found = plans.figure(WORKLOADS[0], times, times, described)
    assert found["ratio"] == pytest.approx(100 / 98)
    verdict = plans.judge([found])
    assert verdict["within"] == [WORKLOADS[0].name] and not verdict["better_than"]["shared"]
    assert verdict["better_than"]["no share"] == [WORKLOADS[0].name]


def test_plans_that_run_the_same_are_one():
    from bench import plans
    from bench.plans.workloads import WORKLOADS

    times = {"chosen": [100.0], "no share": [95.0], "shared": [80.0], "paper": [70.0]}
    runs = {"chosen": "a", "no share": "b", "shared": "a", "paper": "c"}
    described = {plan: {"runs": run} for plan, run in runs.items()}
    found = plans.figure(WORKLOADS[0], times, times, described)
    assert found["same"] == ["chosen", "shared"]
    assert found["ratio"] == pytest.approx(90 / 70)
    assert found["ratio_alone"] == pytest.approx(100 / 70)
    assert not plans.judge([found])["better_than"]["shared"]
