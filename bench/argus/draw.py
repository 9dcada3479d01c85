"""Tables and plots of the ARGUS experiments, in the paper's order."""

from __future__ import annotations

import statistics

from rich.console import Console

from bench.plot import chart
from bench.report import draw_table


def draw(console: Console, figures: dict) -> None:
    if figures["incremental"]:
        table_4(console, figures["incremental"])
    for part in figures["incremental"]:
        figure_9(console, part)
        figure_10(console, part)
    for pair in figures["vertical"]:
        figure_11(console, pair)
    console.print(plainly(figures), style="yellow", highlight=False)


def table_4(console: Console, parts: list[dict]) -> None:
    heads = ("seconds in total", *(f"{p['dataset']} {p['queries']}Q" for p in parts))
    rows = [
        ("incremental, shared", *(f"{p['incremental_seconds']:,.2f}" for p in parts)),
        ("naive, one by one", *(f"{p['naive_one_by_one_seconds']:,.2f}" for p in parts)),
        ("naive, four at a time", *(f"{p['naive_at_once_seconds']:,.2f}" for p in parts)),
        ("a batch without a query", *(f"{p['batch_floor_seconds']:.2f}" for p in parts)),
        ("naive over one row, × queries", *(f"{naive_floor(p):,.2f}" for p in parts)),
        ("naive (the faster) / incremental", *(f"{gain(p):.1f}" for p in parts)),
        ("the same, less fixed costs", *(net_gain(p) for p in parts)),
    ]
    draw_table(console, "Table 4: incremental against naive", heads, rows)


def naive_floor(part: dict) -> float:
    return part["naive_floor_seconds"] * part["queries"]


def gain(part: dict) -> float:
    return part["naive_seconds"] / part["incremental_seconds"]


def net_gain(part: dict) -> str:
    """Without what Spark asks for on either side; nothing where that is nearly everything."""
    ours = part["incremental_seconds"] - part["batch_floor_seconds"]
    theirs = part["naive_one_by_one_seconds"] - naive_floor(part)
    whole = part["naive_one_by_one_seconds"]
    if ours < 0.1 * part["incremental_seconds"] or theirs < 0.1 * whole:
        return "lost in fixed cost"
    return f"{theirs / ours:.1f}"


def figure_9(console: Console, part: dict) -> None:
    found = part["per_query"]
    numbered = list(enumerate(found, start=1))
    series = {
        "naive": [(i, q["naive_seconds"]) for i, q in numbered],
        "incremental, alone (sample)": [
            (i, q["alone_seconds"]) for i, q in numbered if q["alone_seconds"]
        ],
        "incremental, shared (an equal part)": [(i, q["shared_seconds"]) for i, q in numbered],
    }
    title = f"Fig 9, {part['dataset']}: seconds of each query, by aggregation size"
    console.print(chart(title, series, x="query", y="seconds", log_x=False))
    heads = ("aggregation size", "queries", "groups", "naive s", "alone s", "naive / shared")
    draw_table(console, f"Fig 9, {part['dataset']}: by quarter", heads, quarters(found))


def quarters(found: list[dict]) -> list[tuple]:
    empty = [q for q in found if not q["rows"]]
    rest = [q for q in found if q["rows"]]
    size = max(1, -(-len(rest) // 4))
    parts = [("nothing selected", empty)] if empty else []
    for i in range(0, len(rest), size):
        part = rest[i : i + size]
        parts.append((f"up to {part[-1]['aggregation_size']:.1e}", part))
    return [(name, *quarter(part)) for name, part in parts]


def quarter(part: list[dict]) -> tuple:
    alone = [q["alone_seconds"] for q in part if q["alone_seconds"]]
    naive = statistics.mean(q["naive_seconds"] for q in part)
    return (
        len(part),
        f"{statistics.mean(q['groups'] for q in part):,.0f}",
        f"{naive:.3f}",
        f"{statistics.mean(alone):.3f}" if alone else "",
        f"{naive / part[0]['shared_seconds']:.1f}",
    )


def figure_10(console: Console, part: dict) -> None:
    points = part["sharing"]
    series = {
        "shared": [(p["queries"], p["seconds"]) for p in points],
        f"unshared ({points[0]['sampled']} sampled, scaled)": [
            (p["queries"], p["unshared_seconds"]) for p in points
        ],
        "unshared, fixed cost once": [
            (p["queries"], p["unshared_seconds_one_floor"]) for p in points
        ],
    }
    title = f"Fig 10, {part['dataset']}: shared against unshared"
    console.print(chart(title, series, x="queries", y="seconds", log_x=False, log_y=False))
    heads = (
        "queries",
        "shared s",
        "unshared s",
        "fixed cost once s",
        "that / shared",
        "register s",
    )
    rows = [
        (
            f"{p['queries']:,}",
            f"{p['seconds']:,.2f}",
            f"{p['unshared_seconds']:,.2f}",
            f"{p['unshared_seconds_one_floor']:,.2f}",
            f"{p['unshared_seconds_one_floor'] / p['seconds']:.1f}",
            f"{p['registration_seconds']:,.1f}",
        )
        for p in points
    ]
    draw_table(console, title, heads, rows)


def figure_11(console: Console, pair: dict) -> None:
    points = pair["points"]
    series = {
        "with": [(p["increment"], p["with_seconds"]) for p in points],
        "without": [(p["increment"], p["without_seconds"]) for p in points],
        "a batch without a query": [(p["increment"], p["floor_seconds"]) for p in points],
    }
    title = f"Fig 11: {pair['pair']} ({pair['groups_a']:,} → {pair['groups_b']:,} groups)"
    console.print(chart(title, series, x="rows of the increment", y="seconds"))
    heads = (
        "increment",
        "with s",
        "without s",
        "no query s",
        "with ms/row",
        "without",
        "gain",
        "C's",
    )
    rows = [
        (
            f"{p['increment']:,}",
            f"{p['with_seconds']:.3f}",
            f"{p['without_seconds']:.3f}",
            f"{p['floor_seconds']:.3f}",
            f"{p['with_row_ms']:,.3f}",
            f"{p['without_row_ms']:,.3f}",
            f"{p['gain']:.2f}",
            f"{p['control_gain']:.2f}",
        )
        for p in points
    ]
    draw_table(console, title, heads, rows)


def plainly(figures: dict) -> str:
    """Where Spark's fixed cost hides the effect."""
    found = []
    for part in figures["incremental"]:
        ours = part["batch_floor_seconds"] / part["incremental_seconds"]
        theirs = naive_floor(part) / part["naive_one_by_one_seconds"]
        if part["is_recomputed"]:
            found.append(
                f"{part['dataset']}: queries were recomputed, so whatever shared gains over"
                " unshared comes from queries that overlap on the cores, not from sharing."
            )
        found.append(
            f"{part['dataset']} ({figures['origin'][part['dataset']]} data): Spark's fixed cost is"
            f" {ours:.0%} of the incremental and {theirs:.0%} of the naive time.{doubt(ours)}"
        )
    for pair in figures["vertical"]:
        shares = {p["increment"]: p["floor_seconds"] / p["with_seconds"] for p in pair["points"]}
        text = ", ".join(f"{size:,} rows {share:.0%}" for size, share in shares.items())
        found.append(
            f"{pair['pair']}: fixed cost of an increment of {text}.{doubt(*shares.values())}"
        )
        gain, control = (
            statistics.median(p[key] for p in pair["points"]) for key in ("gain", "control_gain")
        )
        found.append(
            f"{pair['pair']}: B gains {gain:.2f} × by standing beside A; C, which cannot be derived"
            f" from it, gains {control:.2f} ×. Vertical expansion is what B gains beyond that."
        )
    return "\n".join(found)


def doubt(*shares: float) -> str:
    """A batch without a query cannot take longer than one with them."""
    if max(shares) < 1:
        return ""
    return " More than all of it: the machine was not quiet, and these figures mean nothing."
