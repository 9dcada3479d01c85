"""Tables and plots of the PSoup experiments, in the paper's order."""

from __future__ import annotations

from rich.console import Console

from bench.plot import chart
from bench.report import draw_table


def draw(console: Console, figures: dict) -> None:
    if figures.get("reading"):
        figure_7(console, figures["reading"]["points"])
        table_2(console, figures["reading"])
    if figures.get("arriving"):
        figure_9(console, figures["arriving"])
    if figures.get("matching"):
        costs(console, figures["matching"])
    if part := figures.get("ranked"):
        ranked(console, part)
    if part := figures.get("registering"):
        console.print(
            f"{part['queries']:,} queries over {part['rows']:,} rows: registered in"
            f" {part['registered_seconds']:.2f} s, readable after {part['readable_seconds']:.2f} s; a scan"
            f" takes {part['scan_seconds']:.2f} s, a read of all rows {part['read_ms']:.0f} ms",
            highlight=False,
        )


def ranked(console: Console, part: dict) -> None:
    points = part["points"]
    ways = {"tree": "panes and edges", "rows": "the window's rows"}
    series = {ways[way]: [(p["x"], p[way]) for p in points] for way in ways}
    title = f"Section 6: MAX at any instant, {part['rows']:,} rows retained"
    console.print(chart(title, series, x="tuples", y="ms"))
    rows = [(f"{p['x']:,}", *(f"{p[way]:.1f}" for way in ways)) for p in points]
    draw_table(console, title, ("tuples in the window", *(f"{w}, ms" for w in ways.values())), rows)


def figure_7(console: Console, points: list[dict]) -> None:
    for kind in ("equality", "interval"):
        found = [p for p in points if p["experiment"] == "window" and p["kind"] == kind]
        ways = list(found[0]["ms"]) if found else []
        series = {way: [(p["x"], p["ms"][way]) for p in found if way in p["ms"]] for way in ways}
        title = f"Fig 7, {kind} predicates: response time by window size"
        console.print(chart(title, series, x="tuples", y="ms"))
        rows = [(f"{p['x']:,}", f"{p['rows']:,.0f}", *_ms(p, ways)) for p in found]
        draw_table(console, title, ("tuples", "rows out", *ways), rows)


def _ms(point: dict, ways: list[str]) -> list[str]:
    return [f"{point['ms'][way]:.2f}" if way in point["ms"] else "" for way in ways]


def table_2(console: Console, reading: dict) -> None:
    found = [p for p in reading["points"] if p["experiment"] == "predicates"]
    ways = list(found[0]["ms"])
    rows = [(p["x"], f"{p['rows']:,.0f}", *_ms(p, ways)) for p in found]
    title = "Table 2: response time in ms by interval predicates, 2^15 tuples"
    draw_table(console, title, ("interval predicates", "rows out", *ways), rows)
    kept = ", ".join(f"{count} {strategy}" for strategy, count in reading["kept"].items())
    console.print(f"queries: {kept}", highlight=False)


def figure_9(console: Console, points: list[dict]) -> None:
    ways = [way for way in points[0] if way != "queries"]
    series = {way: [(p["queries"], p[way]) for p in points if way in p] for way in ways}
    title = "Fig 9: rows a second by number of queries, windows of 1,000 tuples"
    console.print(chart(title, series, x="queries", y="rows/s"))
    rows = [
        (f"{p['queries']:,}", *(f"{p[way]:,.0f}" if way in p else "" for way in ways))
        for p in points
    ]
    draw_table(console, title, ("queries", *ways), rows)


def costs(console: Console, part: dict) -> None:
    rows = [("10 predicates, plainly", f"{part['plain_seconds']:.2f}", "1.00")]
    for count, seconds in part["seconds"].items():
        ratio = seconds / part["plain_seconds"]
        rows.append((f"{int(count):,} queries, by their index", f"{seconds:.2f}", f"{ratio:.2f}"))
    title = f"Matching {part['rows']:,} rows, written"
    draw_table(console, title, ("one Spark pass", "seconds", "× plain"), rows)
