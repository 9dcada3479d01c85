"""The columns of a query's answer, as far as they are known without Spark."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from weft.errors import UnknownName
from weft.sql.scope import OPEN, Frame, Item, Output, Visible, position

GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack)


def output_of(select: exp.Select, frame: Frame) -> Output:
    items: list[Item] = []
    is_open = False
    for projection in select.expressions:
        made = _items(projection, frame)
        is_open = is_open or made.is_open
        items += made.items
    return Output(tuple(items), is_open)


def _items(projection: exp.Expression, frame: Frame) -> Output:
    if isinstance(projection, exp.Star):
        return _star(projection, frame.sources, frame)
    if isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star):
        named = [s for s in frame.sources if s.alias.lower() == projection.table.lower()]
        return (
            _star(projection, named, Frame()) if named and not projection.args.get("db") else OPEN
        )
    if isinstance(projection, exp.Aliases):
        return Output(tuple(Item(name.name, name) for name in projection.args["expressions"]))
    if isinstance(projection, (exp.QueryTransform, *GENERATORS)):
        return OPEN
    if isinstance(projection, exp.Dot):
        return Output((Item(projection.expression.name or None, projection),))
    if isinstance(projection, exp.Literal):
        return Output((Item(projection.name, projection),))
    name = projection.alias_or_name if isinstance(projection, exp.Alias | exp.Column) else None
    return Output((Item(name or None, projection),))


def _star(star: exp.Expression, sources: list[Visible], frame: Frame) -> Output:
    """Every column of these sources, those that a join merged once; SELECT * EXCEPT is left open."""
    plain = star if isinstance(star, exp.Star) else star.this
    if any(source.is_open for source in sources) or any(plain.args.values()):
        return OPEN
    items = [Item(name, star) for name in _columns(sources, frame)]
    has_unnamed = any(source.output.has_unnamed for source in sources)
    return Output((*items, *([Item(None, star)] if has_unnamed else [])))


def _columns(sources: list[Visible], frame: Frame) -> Iterator[str]:
    seen: set[str] = set()
    for source in sources:
        for name in () if source.is_joined_out else source.columns:
            merged = id(source) in frame.merged.get(name.lower(), set())
            if not (merged and name.lower() in seen):
                yield name
            if merged:
                seen.add(name.lower())


def refuse_duplicates(output: Output) -> None:
    """A standing query's answer is kept under its column names, so each name may stand once."""
    seen: set[str] = set()
    for item in output.items:
        if item.name is None:
            continue
        if item.name.lower() in seen:
            raise _duplicate(item)
        seen.add(item.name.lower())


def _duplicate(item: Item) -> UnknownName:
    is_star = item.node.find(exp.Star) is not None and not isinstance(item.node, exp.Alias)
    return UnknownName(
        f'the answer would have two columns "{item.name}"',
        detail="SELECT * takes the columns of every source" if is_star else None,
        hint="name the columns you want instead of *, and give one of them an alias"
        if is_star
        else "give one of them an alias",
        code="WEFT_DUPLICATE_COLUMN",
        **position(item.node),
    )
