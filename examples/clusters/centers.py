"""TrackClusterCenters (ARGUS, section 1): where the points of a stream gather, as an aggregate.

The state is a grid: for each cell that holds points, their sums and their number. Two grids merge by
adding, so any split of the points, in any order, gives the same grid: the law that makes an aggregate
incremental and shareable. The finish joins dense cells that touch; a cluster's center is the mean of
its points. The grid grows with the area that is covered, not with the number of points.
"""

import numpy as np
import pyarrow as pa

import weft

WIDTH = 1.0  # of a cell
DENSE = 3  # points that make a cell part of a cluster
CELL = np.dtype([("i", "<i8"), ("j", "<i8"), ("x", "<f8"), ("y", "<f8"), ("n", "<i8")])


@weft.aggregate(
    "track_cluster_centers(x DOUBLE, y DOUBLE) RETURNS ARRAY<STRUCT<x: DOUBLE, y: DOUBLE, n: BIGINT>>"
)
class TrackClusterCenters:
    def zero(self) -> bytes:
        return b""

    def step(self, state: bytes, rows: pa.RecordBatch) -> bytes:
        x, y = (rows.column(name).to_numpy(zero_copy_only=False) for name in ("x", "y"))
        known = np.isfinite(x) & np.isfinite(y)  # NULL is NaN here
        points = np.zeros(known.sum(), CELL)
        points["x"], points["y"], points["n"] = x[known], y[known], 1
        points["i"], points["j"] = points["x"] // WIDTH, points["y"] // WIDTH
        return summed(np.concatenate([cells(state), points]))

    def merge(self, one: bytes, other: bytes) -> bytes:
        return summed(np.concatenate([cells(one), cells(other)]))

    def finish(self, state: bytes) -> list[dict]:
        dense = {(c["i"], c["j"]): c for c in cells(state) if c["n"] >= DENSE}
        found = []
        while dense:
            cluster, edge = [], [next(iter(dense))]
            while edge:
                i, j = edge.pop()
                if (i, j) in dense:
                    cluster.append(dense.pop((i, j)))
                    edge += [(i + a, j + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
            found.append(center(cluster))
        return sorted(found, key=lambda c: (-c["n"], c["x"], c["y"]))


def cells(state: bytes) -> np.ndarray:
    return np.frombuffer(state, CELL)


def summed(found: np.ndarray) -> bytes:
    """One entry for each cell of the grid, in the order of the grid."""
    keys, at = np.unique(found[["i", "j"]], return_inverse=True)
    grid = np.zeros(len(keys), CELL)
    grid["i"], grid["j"] = keys["i"], keys["j"]
    for name in ("x", "y", "n"):
        np.add.at(grid[name], at, found[name])
    return grid.tobytes()


def center(cluster: list) -> dict:
    n = int(sum(c["n"] for c in cluster))
    return {
        "x": float(sum(c["x"] for c in cluster)) / n,
        "y": float(sum(c["y"] for c in cluster)) / n,
        "n": n,
    }
