"""The shared part of an explanation as lines of text, and as a Mermaid drawing."""

from __future__ import annotations

from weft.delivery.explain_shared import (
    NodeExplained,
    RouteExplained,
    SharedExplained,
    StatisticExplained,
)
from weft.delivery.explain_weave import weave_lines
from weft.delivery.explain_would import WouldShare
from weft.optimizer.described import counted

NAMED = 5  # queries that are named before the rest is counted
INDENT = " " * 11


def named(names: list[str]) -> str:
    rest = len(names) - NAMED
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def class_text(window: str, dimensions: list[str], predicate: str) -> str:
    by = f", by {', '.join(dimensions)}" if dimensions else ""
    where = f", where {predicate}" if predicate != "TRUE" else ""
    return f"{window}{by}{where}"


def shared_lines(found: SharedExplained) -> list[str]:
    about = class_text(found.window, found.dimensions, found.predicate)
    lines = [f"answers    {found.answers}: {found.answers_why}"]
    lines.append(f"class      {found.class_id}: {about}")
    others = counted(len(found.with_queries), "other query")
    if found.with_queries:
        lines.append(f"{INDENT}with {others}: {named(found.with_queries)}")
    else:
        lines.append(f"{INDENT}no other query is in it")
    for route in found.routes:
        lines += _route_lines(route, is_only=len(found.routes) == 1)
    lines.append(f"tree       {found.tree}")
    if found.weave is not None:
        lines += weave_lines(found.weave)
    for node in found.nodes:
        lines += _node_lines(node)
    lines += [f"may fail   {text}" for text in found.may_fail]
    lines.append(f"finish     {found.finish}")
    return lines


def _route_lines(route: RouteExplained, is_only: bool) -> list[str]:
    until = "on" if route.to_tick is None else f"to {route.to_tick}"
    ticks = "" if is_only else f", ticks from {route.from_tick} {until}"
    test = "" if route.test == "TRUE" else f", where {route.test}"
    return [f"route      node {route.node}{ticks}{test}", *_cover(route)]


def _cover(found: RouteExplained | WouldShare) -> list[str]:
    if found.most is None:
        return []
    partials = f"at most {counted(found.most, 'partial')}, typically {found.typical}"
    lines = [f"{INDENT}one window is covered by {partials}"]
    return [*lines, f"{INDENT}and by {found.edges}"] if found.edges else lines


def _node_lines(node: NodeExplained) -> list[str]:
    columns = ", ".join(map(str, node.columns))
    levels = f", levels of {', '.join(node.levels)}" if len(node.levels) > 1 else ""
    stopped = "" if node.is_folding else "; folds no more"
    readers = counted(len(node.queries), "query")
    classes = counted(len(node.classes), "class")
    lines = [
        f"node {node.id:<6}({columns}), {node.panes}{levels}{stopped}",
        f"{INDENT}{_batch(node)}; in state {counted(node.rows, 'row')}"
        f" in {counted(node.segments, 'segment')}",
    ]
    if node.queries:
        lines.append(f"{INDENT}read by {classes}, {readers}: {named(node.queries)}")
    if node.below:
        below = ", ".join(f"node {n}" for n in node.below)
        lines.append(f"{INDENT}from it: {below}")
    return lines + [_statistic_line(s) for s in node.statistics]


def _batch(node: NodeExplained) -> str:
    if not node.rows_in:
        return "no batch since it was made"
    source = "" if node.parent is None else f" by way of node {node.parent}"
    return f"last batch {counted(node.rows_in, 'row')}{source} → {counted(node.partials_out, 'partial')}"


def _statistic_line(found: StatisticExplained) -> str:
    return f"{INDENT}keeps {found.statistic}, for {_for(found.queries)}"


def _for(queries: list[str]) -> str:
    return f"{counted(len(queries), 'query')}: {named(queries)}" if queries else "no query now"


def would_lines(found: WouldShare) -> list[str]:
    about = class_text(found.window, found.dimensions, found.predicate)
    lines = [f"answers    finished on Spark and stored, since {found.on_spark}"]
    lines = [*(lines if found.on_spark else []), f"class      {about}"]
    lines.append(f"would be   {found.placed}")
    if found.with_queries:
        lines.append(f"{INDENT}with {named(found.with_queries)}")
    lines += [f"makes      {made}" for made in found.makes]
    if found.moves:
        lines.append(f"{INDENT}{counted(len(found.moves), 'class')} would read on from a new node")
    if found.retires:
        nodes = ", ".join(f"node {n}" for n in found.retires)
        lines.append(f"{INDENT}{nodes} would fold no more")
    lines += _cover(found)
    lines.append(f"statistics {', '.join(found.statistics) or 'none'}")
    lines += [f"may fail   {text}" for text in found.may_fail]
    lines.append(f"finish     {found.finish}")
    return lines


def escape(text: str) -> str:
    return text.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def label(*lines: str) -> str:
    return "<br/>".join(escape(line) for line in lines if line)


def shared_mermaid(found: SharedExplained, stream: str, name: str, emits: str) -> str:
    """stream → nodes → class → query."""
    lines = ["flowchart TD", f'  s[("{stream}")]']
    for node in found.nodes:
        source = "s" if node.parent is None else f"n{node.parent}"
        columns = f"({', '.join(map(str, node.columns))})"
        keeps = (
            f"{counted(len(node.statistics), 'statistic')}, {counted(node.rows, 'row')} in state"
        )
        box = label(f"node {node.id} {columns}", node.panes, keeps)
        made = f"{counted(node.partials_out, 'partial')} of {counted(node.rows_in, 'row')}"
        lines.append(f'  {source} -->|"{made}"| n{node.id}["{box}"]')
    where = f"where {found.predicate}" if found.predicate != "TRUE" else ""
    about = label(f"class {found.class_id}", found.window, where)
    lines.append(f'  c{{{{"{about}"}}}}')
    for route in found.routes:
        until = "on" if route.to_tick is None else f"to {route.to_tick}"
        lines.append(f'  n{route.node} -->|"ticks from {route.from_tick} {until}"| c')
    if found.routes[-1].edges:
        lines.append(f'  s -->|"{label(found.routes[-1].edges)}"| c')
    answer = label(name, f"shared, {found.answers}", emits)
    lines.append(f'  c -->|"finish"| a(["{answer}"])')
    if found.with_queries:
        others = counted(len(found.with_queries), "other query")
        lines.append(f'  c --> o(["{label(others, named(found.with_queries))}"])')
    return "\n".join(lines)


def would_mermaid(found: WouldShare, stream: str, emits: str) -> str:
    """stream → the node that would be read → class → query."""
    is_there = found.reads is not None
    box = label(f"node {found.reads}") if is_there else label("a new node", *found.makes)
    about = class_text(found.window, [], found.predicate)
    finish = "finish on Spark" if found.on_spark else "finish"
    lines = [
        "flowchart TD",
        f'  s[("{stream}")] --> n["{box}"]',
        f'  n --> c{{{{"{label(about)}"}}}}',
        *([f'  s -->|"{label(found.edges)}"| c'] if found.edges else []),
        f'  c -->|"{finish}"| a(["{label("query", found.placed, emits)}"])',
    ]
    return "\n".join(lines)
