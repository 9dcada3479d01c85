"""One run in a process of its own: `python -m bench.windows.child SPEC`.

What it has to say goes to stdout, a line of JSON at a time; everything else to stderr.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench.windows.spec import Spec

MARK = "weft-bench "


def main() -> None:
    spec = Spec.from_json(sys.argv[1])
    with tempfile.TemporaryDirectory(dir=spec.folder, prefix="run-") as folder:
        say({"result": engine_of(spec)(spec, Path(folder), tell)})


def engine_of(spec: Spec):
    if spec.engine == "weft":
        from bench.windows import weft_engine

        return weft_engine.run
    from bench.windows import spark_engine

    return spark_engine.run if spec.engine == "spark" else spark_engine.limit


def tell(stage: str, rows: int) -> None:
    say({"stage": stage, "rows": rows})


def say(message: dict) -> None:
    print(MARK + json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
