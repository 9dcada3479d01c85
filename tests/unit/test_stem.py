"""The Query SteM's index: ranges cut into nodes, access paths, masks."""

from __future__ import annotations

import random

from sqlglot import parse_one

from weft.optimizer.factors import EVERYTHING, factor
from weft.optimizer.stem import EVERYWHERE, FANOUT_BITS, WORD, Target, build, cut, key_of

TYPES = {"a": "int", "b": "int", "s": "string"}


def target(number: int, text: str) -> Target:
    return Target(
        number, factor(parse_one(text, dialect="spark"), lambda name: TYPES.get(name, ""))
    )


def test_the_nodes_of_a_range_cover_it_once() -> None:
    rng = random.Random(1)
    for _ in range(500):
        low = rng.randrange(3000)
        high = low + rng.choice((-1, 0, 1, 15, 16, 300, 2999))
        nodes = cut(low, high)
        for rank in (low - 1, low, (low + high) // 2, high, high + 1):
            above = [n for level, n in nodes if rank >> (FANOUT_BITS * level) == n]
            assert len(above) <= (high >= low)
        for rank in range(low, min(high, low + 400) + 1):
            assert sum(rank >> (FANOUT_BITS * level) == n for level, n in nodes) == 1
        assert len(nodes) <= 30 * 4


def test_keys_differ_by_column_level_and_number() -> None:
    keys = [key_of(c, level, n) for c in (0, 1, 2000) for level in (0, 5) for n in (0, 1, 2**31)]
    assert len(set(keys)) == len(keys)
    assert all(key >= 0 for key in keys)


def test_the_narrowest_range_finds_and_the_others_verify() -> None:
    wide = [target(i, f"a > {i}") for i in range(50)]
    stem = build([*wide, target(99, "a > 2 AND b = 7"), target(100, "b > 1")])
    mine = [entry for entry in stem.entries if entry.target == 99]
    assert len(mine) == 1  # the point of b, not the 48 ranks of a
    points = next(i for i, r in enumerate(stem.rankings) if r.is_points)
    assert mine[0].key == key_of(points, 0, 1)
    assert sum(r is not None for r in mine[0].ranges) == 2


def test_predicates_without_a_range_are_met_everywhere() -> None:
    stem = build([target(1, "s LIKE 'x%'"), Target(2, EVERYTHING), target(3, "a = 1")])
    assert stem.has_everywhere
    assert {e.target for e in stem.entries if e.key == EVERYWHERE} == {1, 2}
    assert not build([target(3, "a = 1")]).has_everywhere


def test_more_bits_than_a_word_holds() -> None:
    stem = build([target(i, f"s LIKE '{i}%' AND s LIKE '%{i}'") for i in range(100)])
    assert len(stem.bits) == 200
    assert len(stem.words) == -(-200 // WORD)
    assert all(sum(mask.bit_count() for mask in e.masks) == 2 for e in stem.entries)


def test_equal_predicates_share_their_atoms() -> None:
    stem = build([target(i, "a BETWEEN 3 AND 9") for i in range(1000)])
    assert len(stem.rankings) == 1 and len(stem.rankings[0].cuts) == 2
    assert len(stem.entries) == 1000
