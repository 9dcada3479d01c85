"""The one place that wires the rooms together: catalog, plans, Spark and answers.

core       the writer, Spark, the loop: run, start, stop, advance
plans      every registered query's plan, made again from its statement
registry   creating, replacing and dropping
data       rows that come in: pushes and changes of tables
"""

from weft.engine.core import Engine

__all__ = ["Engine"]
