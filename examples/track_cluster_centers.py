"""TrackClusterCenters, an aggregate in Python (ARGUS, section 1): two groups of vehicles on the move.

The class is in clusters/centers.py. Both queries are answered from one fold of it: by minute, and
over the last three. The picture, centers.svg, shows the points and the way of each center.
"""

import math
import sys
import tempfile
from pathlib import Path

import weft

sys.path.append(str(Path(__file__).resolve().parent))
MINUTES = 6
EACH = 40  # points of a group in a minute
COLOURS = ("#c2185b", "#00796b")


def main(folder=None, spark=None):
    from clusters.centers import TrackClusterCenters

    folder = Path(folder or tempfile.mkdtemp())
    batches = [list(vehicles(minute)) for minute in range(MINUTES)]
    with weft.connect(folder / "warehouse", spark=spark) as db:
        db.register_aggregate(TrackClusterCenters)
        db.sql("""
            CREATE STREAM vehicles (x DOUBLE, y DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts);

            CREATE CONTINUOUS QUERY centers AS
            SELECT track_cluster_centers(x, y) AS centers, count(*) AS points
            FROM vehicles [RANGE 1 MINUTE SLIDE 1 MINUTE];

            CREATE CONTINUOUS QUERY smooth AS
            SELECT track_cluster_centers(x, y) AS centers
            FROM vehicles [RANGE 3 MINUTES SLIDE 1 MINUTE];
        """)
        for batch in batches:  # nothing is computed twice
            db.push("vehicles", batch)
            db.run()
        db.advance("vehicles", f"2026-01-01T10:{MINUTES:02}:00Z")
        found = sorted(db.query("centers").history().to_pylist(), key=lambda w: w["window_end"])
        for window in found:
            shown = "  ".join(f"({c['x']:5.2f}, {c['y']:5.2f})" for c in by_y(window["centers"]))
            print(f"{window['window_end']:%H:%M}  {shown}  of {window['points']} points")
        newest = by_y(db.query("smooth").results().to_pylist()[0]["centers"])
        shown = "  ".join(f"({c['x']:5.2f}, {c['y']:5.2f})" for c in newest)
        print(f"over three minutes: {shown}")
    picture = folder / "centers.svg"
    picture.write_text(drawn(batches, [by_y(window["centers"]) for window in found]))
    return picture


def vehicles(minute):
    """Two groups: one drives along a line, the other on an arc; and a stray."""
    arc = (4 + 9 * math.sin(minute / 4), 14 - minute)
    for k in range(EACH):
        turn, far = k * 2.4, math.sqrt(k / EACH)  # a sunflower: even, without chance
        for x, y in ((2 + 3 * minute, 3 + minute / 4), arc):
            yield point(x + far * math.cos(turn), y + far * math.sin(turn), minute, k)
    yield point(19 - 2.5 * minute, 9.5, minute, 59)


def point(x, y, minute, second):
    ts = f"2026-01-01T10:{minute:02}:{second:02}Z"
    return {"x": round(x, 3), "y": round(y, 3), "ts": ts}


def by_y(centers):
    return sorted(centers, key=lambda c: c["y"])


def drawn(batches, windows, scale=24, height=17):
    """An SVG: points in grey, lighter the older they are, and a line through each center's places."""

    def place(p):
        return f"{p['x'] * scale + 24:.1f}", f"{(height - p['y']) * scale:.1f}"

    size = f'viewBox="0 0 {22 * scale} {height * scale}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">']
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for age, batch in enumerate(batches):
        shade = f'fill="#444" fill-opacity="{0.15 + 0.5 * age / len(batches):.2f}"'
        for x, y in map(place, batch):
            parts.append(f'<circle cx="{x}" cy="{y}" r="2" {shade}/>')
    for i, colour in enumerate(COLOURS):
        way = [place(centers[i]) for centers in windows]
        line = " ".join(f"{x},{y}" for x, y in way)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="3"/>')
        for x, y in way:
            parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    print(f"picture: {main(*sys.argv[1:2])}")
