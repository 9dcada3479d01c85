"""Answers kept in memory: while they stand, and within their bounds."""

from __future__ import annotations

import pyarrow as pa

from weft.results.kept import OVERHEAD, Answer, KeptAnswers

SIZE = 10 * OVERHEAD


def answer(value: int, state: object = None) -> Answer:
    return Answer(None, pa.table({"a": [value]}), state)


def value(found: Answer | None) -> int | None:
    return None if found is None else found.table["a"][0].as_py()


def test_an_answer_stands_for_one_version() -> None:
    kept = KeptAnswers(2**20)
    kept.put({"Q": answer(1)}, "v1", 8)
    assert value(kept.get("q", "v1")) == 1
    assert kept.get("q", "v2") is None
    assert kept.get("q", None) is None
    kept.put({"q": answer(2)}, "v2", 8)
    assert kept.get("q", "v1") is None
    assert value(kept.get("q", "v2")) == 2


def test_nothing_is_kept_without_a_version() -> None:
    kept = KeptAnswers(2**20)
    kept.put({"q": answer(1)}, None, 8)
    assert kept.get("q", None) is None
    assert kept.bytes == 0


def test_an_answer_is_renewed_by_its_state_alone() -> None:
    kept = KeptAnswers(2**20)
    kept.put({"q": answer(1, "s"), "stored": answer(2)}, "v1", 8)
    assert kept.renew("q", "v2", "other") is None
    assert kept.renew("stored", "v2", None) is None
    assert value(kept.renew("q", "v2", "s")) == 1
    assert value(kept.get("q", "v2")) == 1
    assert kept.get("stored", "v2") is None


def test_what_was_used_longest_ago_goes_first() -> None:
    kept = KeptAnswers(4 * (SIZE + OVERHEAD))
    for n, name in enumerate("abcd"):
        kept.put({name: answer(n)}, "v", SIZE)
    assert value(kept.get("a", "v")) == 0  # used
    kept.put({"e": answer(4)}, "v", SIZE)
    assert kept.get("b", "v") is None
    assert [value(kept.get(name, "v")) for name in "acde"] == [0, 2, 3, 4]
    assert kept.bytes == 4 * (SIZE + OVERHEAD)


def test_answers_of_one_table_go_together() -> None:
    kept = KeptAnswers(4 * (SIZE + 2 * OVERHEAD))
    kept.put({"a": answer(0), "b": answer(1)}, "v", SIZE)
    kept.put({"a": answer(2)}, "v", SIZE)  # what `b` holds stays as large
    assert kept.bytes == 2 * SIZE + 3 * OVERHEAD
    kept.put({"b": answer(3)}, "v", SIZE)
    assert kept.bytes == 2 * (SIZE + OVERHEAD)
    for name in "cdef":
        kept.put({name: answer(0), name * 2: answer(0)}, "v", SIZE)
    assert kept.get("a", "v") is None
    assert value(kept.get("ff", "v")) == 0
    assert kept.bytes <= 4 * (SIZE + 2 * OVERHEAD)


def test_what_is_too_large_is_not_kept() -> None:
    kept = KeptAnswers(4 * SIZE)
    kept.put({"a": answer(1)}, "v", SIZE)
    assert kept.get("a", "v") is None
    none = KeptAnswers(0)
    none.put({"a": answer(1)}, "v", 0)
    assert none.get("a", "v") is None


def test_who_was_read_is_told_once() -> None:
    kept = KeptAnswers(2**20)
    kept.get("Q", "v")
    assert kept.take_read() == {"q"}
    assert kept.take_read() == set()
