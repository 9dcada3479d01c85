"""A standing query over another standing query reads its definition, as a view is read.

Sound because a standing answer is a function of the clock: the same SQL over the same contents.
A per-window answer is not inlined: its closed windows are a stream of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from weft.logical.query import BoundQuery, Source
from weft.logical.relations import Kind


def inline_views(bound: BoundQuery, definition: Callable[[str], BoundQuery]) -> BoundQuery:
    """Replace every standing query among the sources by its own definition."""
    views = {
        s.placeholder: definition(s.relation.name)
        for s in bound.sources
        if s.relation.kind is Kind.QUERY and not s.relation.is_per_window
    }
    if not views:
        return bound
    tree = bound.tree.copy()
    sources: list[Source] = []
    for source in bound.sources:
        view = views.get(source.placeholder)
        if view is None:
            sources.append(source)
            continue
        sources += [
            replace(s, placeholder=f"{source.placeholder}_{s.placeholder}") for s in view.sources
        ]
    for table in list(tree.find_all(exp.Table)):
        if table.name in views:
            table.replace(_as_subquery(table, views[table.name]))
    return replace(bound, tree=tree, sources=tuple(sources))


def _as_subquery(table: exp.Table, view: BoundQuery) -> exp.Subquery:
    prefix = table.name
    names = {s.placeholder for s in view.sources}
    body = view.tree.copy()
    for inner in body.find_all(exp.Table):
        if inner.name in names:
            inner.set("this", exp.to_identifier(f"{prefix}_{inner.name}"))
    subquery = exp.Subquery(this=body, alias=table.args.get("alias"))
    if table.args.get("joins"):
        subquery.set("joins", table.args["joins"])
    return subquery
