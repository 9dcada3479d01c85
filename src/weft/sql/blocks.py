"""What can be read off one SELECT block: its aliases, its nested joins, what a join merges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from weft.sql.scope import Output, Visible


def aliased(node: exp.Expression, output: Output) -> Output:
    alias = node.args.get("alias")
    return output.renamed(alias.columns) if isinstance(alias, exp.TableAlias) else output


def merged_names(join: exp.Join, left: list[Visible], right: Visible) -> list[str]:
    if (join.method or "").upper() == "NATURAL":
        return [name for name in right.columns if any(s.has(name) for s in left)]
    return [name.name for name in join.args.get("using") or []]


def nested_joins(node: exp.Select) -> Iterator[exp.Join]:
    """Joins inside parentheses in FROM, which share the block's frame."""
    tables = [node.args["from_"].this] if node.args.get("from_") else []
    tables += [join.this for join in node.args.get("joins") or []]
    while tables:
        table = tables.pop()
        inner = table.args.get("joins") or []
        yield from inner
        tables += [join.this for join in inner]
        if isinstance(table, exp.Subquery) and not isinstance(table.this, exp.Query):
            tables.append(table.this)


def aliases(projections: Iterable[exp.Expression]) -> Iterator[str]:
    for projection in projections:
        if isinstance(projection, exp.Alias):
            yield projection.alias
        elif isinstance(projection, exp.Aliases):
            yield from (name.name for name in projection.args["expressions"])


def made_by_windows(node: exp.Select) -> set[str]:
    """Spark's window() and session_window() that stay functions make a column of that name."""
    calls = {call.name.lower() for call in node.find_all(exp.Anonymous)}
    return calls & {"window", "session_window"}
