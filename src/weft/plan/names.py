"""The name Spark gives to an output column without an alias, where it is simple to say."""

from __future__ import annotations

from sqlglot import exp


def spark_name(node: exp.Expression) -> str:
    """count(1), sum(price), (a + b): Spark's pretty SQL for the common shapes."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Paren):
        return spark_name(node.this)
    if isinstance(node, exp.Star):
        return "1"
    if isinstance(node, exp.Dot):
        return node.expression.name
    if isinstance(node, exp.Literal):
        return node.this
    if isinstance(node, exp.Binary):
        symbol = node.sql(dialect="spark")[len(node.this.sql(dialect="spark")) :].split()[0]
        return f"({spark_name(node.this)} {symbol} {spark_name(node.expression)})"
    if isinstance(node, exp.Func):
        name = node.sql(dialect="spark").partition("(")[0].lower()
        arguments = [
            a for v in node.args.values() for a in (v if isinstance(v, list) else [v])
            if isinstance(a, exp.Expression)
        ]  # fmt: skip
        return f"{name}({', '.join(spark_name(a) for a in arguments)})"
    return node.sql(dialect="spark")
