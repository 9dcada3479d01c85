"""The finish: the rest of a SELECT over merged rows, as one block over weft_m0.

Aggregate calls become expressions over s_* columns, group-by expressions g_* columns, the window's
edges _weft_start and _weft_end, HAVING a WHERE. What is left of the SELECT list stays as it is.
"""

from __future__ import annotations

from sqlglot import exp

from weft.logical.aggregates import CannotShare
from weft.plan.names import spark_name
from weft.plan.portable import NotPortable, Renderer
from weft.plan.recompute import RecomputePlan
from weft.plan.resolve import END, START, Block
from weft.plan.terms import Terms

MERGED = "weft_m0"
LONGEST = 60  # characters of an expression in a message


class Finisher:
    """Builds the finish of one block, in Spark's SQL and in DuckDB's."""

    def __init__(
        self, plan: RecomputePlan, select: exp.Select, block: Block, terms: Terms,
        names: tuple[str, ...] | None,
    ) -> None:  # fmt: skip
        self._plan, self._select, self._block, self._terms = plan, select, block, terms
        self._names = names
        has_windows = any(n.find(exp.Window) for _, n in block.projections)
        limit = select.args.get("limit") or select.args.get("offset")
        # without GROUP BY the block is grouped by its whole output, and so distinct already
        self._is_distinct = bool(select.args.get("distinct") and select.args.get("group"))
        self._is_limited = bool(limit)
        self.is_row_local = not (has_windows or limit or self._is_distinct)
        self.obstacle: str | None = None  # why DuckDB cannot say it

    def select(self) -> exp.Select:
        shown = [
            exp.alias_(self.spark(node), self._name(i), quoted=True)
            for i, (_, node) in enumerate(self._block.projections)
        ]
        finish = exp.select(*shown).from_(exp.to_table(MERGED))
        if self._block.having is not None:
            finish = finish.where(self.spark(self._block.having), copy=False)
        if self._is_distinct:
            finish = finish.distinct(copy=False)
        if self._is_limited:
            for ordered in self._order():
                finish.order_by(ordered, copy=False)
            for clause in ("limit", "offset"):
                kept = self._select.args.get(clause)
                finish.set(clause, kept.copy() if kept else None)
        return finish

    def duck(self) -> str | None:
        """The finish in DuckDB's SQL, if every expression in it means the same there."""
        renderer = Renderer(self._terms)
        try:
            shown = [
                f"{renderer.render(node)} AS {quoted(self._name(i))}"
                for i, (_, node) in enumerate(self._block.projections)
            ]
            having = self._block.having
            where = f" WHERE {renderer.render(having)}" if having is not None else ""
            return (
                f"SELECT {'DISTINCT ' if self._is_distinct else ''}{', '.join(shown)}"
                f" FROM {MERGED}{where}{self._duck_limit()}"
            )
        except NotPortable as found:
            text = found.node.sql(dialect="spark").replace("`", "")
            shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
            self.obstacle = f"DuckDB does not compute {shown} exactly as Spark does"
            return None

    def _duck_limit(self) -> str:
        if not self._is_limited:
            return ""
        keys = ", ".join(
            f"{quoted(k.column)} {'DESC' if k.is_descending else 'ASC'}"
            f" NULLS {'FIRST' if k.is_nulls_first else 'LAST'}"
            for k in self._plan.order
        )
        text = f" ORDER BY {keys}" if keys else ""
        for clause in ("limit", "offset"):
            if kept := self._select.args.get(clause):
                text += f" {clause.upper()} {kept.expression.sql(dialect='duckdb')}"
        return text

    def _order(self) -> list[exp.Expression]:
        return [
            exp.Ordered(
                this=exp.column(k.column, quoted=True), desc=k.is_descending,
                nulls_first=k.is_nulls_first,
            )
            for k in self._plan.order
        ]  # fmt: skip

    def _name(self, index: int) -> str:
        if self._names and index < len(self._names):
            return self._names[index]
        name, node = self._block.projections[index]
        return name or spark_name(node)

    def spark(self, node: exp.Expression) -> exp.Expression:
        """An expression of the block over the merged row."""
        if isinstance(node, exp.Column) and node.name in (START, END):
            return node.copy()
        if found := self._terms.lowered(node):
            return _verbatim(found.spark)
        if dimension := self._terms.dimension(node):
            return exp.column(dimension.column, quoted=True)
        if isinstance(node, exp.Column):
            raise CannotShare(f'column "{node.name}" is neither grouped by nor aggregated')
        return type(node)(**{key: self._child(value) for key, value in node.args.items()})

    def _child(self, value: object) -> object:
        if isinstance(value, list):
            return [self._child(item) for item in value]
        return self.spark(value) if isinstance(value, exp.Expression) else value


def _verbatim(text: str) -> exp.Expression:
    """SQL text as a leaf of the tree: a column where it is one, else written out as it is."""
    bare = text.strip("`")
    if bare.isidentifier() and text == f"`{bare}`":
        return exp.column(bare, quoted=True)
    return exp.Var(this=text)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
