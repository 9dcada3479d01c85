"""ORDER BY and LIMIT of a standing query: an answer is a bag of rows, so its order is data.

Each sort key is stored with the answer, as an output column where it is one, else as a helper
column, and applied when the answer is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weft.errors import Unsupported


@dataclass(frozen=True, slots=True)
class SortKey:
    column: str  # a column of the tree's output
    is_descending: bool
    is_nulls_first: bool


def name_sort_keys(tree: exp.Query) -> tuple[SortKey, ...]:
    """Say by which output columns the answer is sorted; add helper columns for other keys."""
    order = tree.args.get("order")
    if order is None:
        return ()
    keys = []
    for index, ordered in enumerate(order.expressions):
        name = _output_column(tree, ordered.this) or _add_helper(tree, ordered.this, index)
        descending = bool(ordered.args.get("desc"))
        nulls_first = ordered.args.get("nulls_first")
        keys.append(
            SortKey(name, descending, not descending if nulls_first is None else bool(nulls_first))
        )
    return tuple(keys)


def _output_column(tree: exp.Query, key: exp.Expression) -> str | None:
    """The output column that a sort key names by alias, by position, or by being the same."""
    select = _first_select(tree)
    if any(p.is_star for p in select.expressions):
        is_plain = isinstance(key, exp.Column) and not isinstance(tree, exp.Select)
        return key.name if is_plain else None
    named = [(p.alias_or_name, p.unalias()) for p in select.expressions]
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.this) <= len(named):
        return named[int(key.this) - 1][0] or None
    if isinstance(key, exp.Column) and not key.table:
        for name, _ in named:
            if name.lower() == key.name.lower():
                return name
    for name, expression in named:
        if name and expression == key:
            return name
    return None


def _add_helper(tree: exp.Query, key: exp.Expression, index: int) -> str:
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        raise Unsupported(
            f"ORDER BY {key.sql('spark')} is not a column of the answer",
            hint="order by an output column, by name or position",
        )
    aliases = {p.alias.lower(): p.unalias() for p in tree.expressions if p.alias}

    def resolve(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases:
            return aliases[node.name.lower()].copy()
        return node

    name = f"_weft_sort_{index}"
    expression = key.copy().transform(resolve)
    tree.append("expressions", exp.alias_(expression, name, quoted=True))
    return name


def _first_select(tree: exp.Query) -> exp.Select:
    while not isinstance(tree, exp.Select):
        tree = tree.this
    return tree


def detach_limit(tree: exp.Query) -> tuple[int | None, int]:
    """Take ORDER BY, LIMIT and OFFSET off a per-window query: they apply to each window."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    tree.set("order", None)
    tree.set("limit", None)
    tree.set("offset", None)
    return _number(limit), _number(offset) or 0


def _number(clause: exp.Expression | None) -> int | None:
    if clause is None:
        return None
    value = clause.args.get("expression") or clause.args.get("count")
    if isinstance(value, exp.Literal) and value.is_int:
        return int(value.this)
    raise Unsupported("LIMIT and OFFSET take a number", hint="write LIMIT 10")
