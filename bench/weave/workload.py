"""Queries as the paper draws them (Weave Share §6, Table 1).

The paper says that slides come from a Zipf distribution "over a discrete range" of template
windows within 1 – 100,000, skewed to large ones, and counts edges in bitmaps of the composite
slide; it does not print the templates. Ours are the 36 divisors of 100,000, which keep the
composite slide at 100,000. `any_slide` draws from all integers instead.
"""

from __future__ import annotations

import numpy as np

from weft.optimizer.weave.windows import Query

TEMPLATES = tuple(sorted((2**a * 5**b for a in range(6) for b in range(6)), reverse=True))
EVERY_INTEGER = tuple(range(100_000, 0, -1))


def drawn(
    count: int,
    *,
    skew: float = 0.6,
    most_overlap: float = 50.0,
    seed: int = 1,
    any_slide: bool = False,
) -> list[Query]:
    """Slides by Zipf's law, the largest first; overlap factors uniform in [1, most_overlap]."""
    slides = EVERY_INTEGER if any_slide else TEMPLATES
    draw = np.random.default_rng([seed, count])
    weights = np.arange(1, len(slides) + 1) ** -float(skew)
    picked = draw.choice(len(slides), count, p=weights / weights.sum())
    overlaps = draw.uniform(1.0, most_overlap, count)
    return [
        Query(f"q{i:05}", slides[k], max(slides[k], round(slides[k] * overlap)))
        for i, (k, overlap) in enumerate(zip(picked, overlaps, strict=True))
    ]
