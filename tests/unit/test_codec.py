"""What the catalog holds of shared queries can be read back, also what older versions wrote."""

from __future__ import annotations

import json

from weft.logical.statistics import Statistic
from weft.optimizer.codec import dump, load
from weft.optimizer.nodes import Finish

COUNT = Statistic("count(*)", "bigint", "count(*)", "sum({})", "sum({})")
FINISH = Finish("SELECT 1", "SELECT 1", ("g_1",), (COUNT,), False, True, 3, 0, ("a", "b"), 7)


def test_a_finish_comes_back() -> None:
    on_spark = Finish(None, "SELECT 1", (), (), True, False, None, 0, (), 1, on_spark="LIMIT")
    for finish in (FINISH, on_spark):
        assert load(dump(finish)) == finish


def test_a_finish_of_before_is_finished_by_duckdb() -> None:
    raw = json.loads(dump(FINISH))
    del raw["on_spark"], raw["definitions"], raw["policy"]
    assert load(json.dumps(raw)) == FINISH
    assert load(json.dumps(raw)).on_spark is None
