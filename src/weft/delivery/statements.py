"""Statements, carried out: one small method each."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatchmethod
from typing import Any

from weft.catalog.records import QueryRecord, StreamRecord, TableRecord, to_instant
from weft.catalog.rules import unknown
from weft.catalog.view import View
from weft.delivery.explain import explain_query, explain_select, render
from weft.engine import Engine
from weft.engine.aggregates import marked, user_defined, written_out
from weft.errors import SqlError, TypeProblem
from weft.logical.aggregates import Aggregates
from weft.logical.query import BoundQuery
from weft.logical.relations import Column, TableDefinition
from weft.logical.windows import duration
from weft.results.pull import Namespace, pull
from weft.results.system import query_rows
from weft.sql import statements as st
from weft.sql.bind import bind


def together(statements: list[Any]) -> list[list[Any]]:
    """Statements in order, with queries that are created one after the other in one group."""
    groups: list[list[Any]] = []
    for statement in statements:
        is_next = groups and isinstance(statement, st.CreateQuery)
        if is_next and isinstance(groups[-1][-1], st.CreateQuery):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


class Executor:
    def __init__(self, engine: Engine, query: Callable[[str], Any]) -> None:
        self._engine = engine
        self._query = query

    def execute_all(self, statements: list[Any]) -> Any:
        """Carry out statements of one kind that came together; returns the last one's result."""
        if len(statements) > 1:
            self._engine.create_queries(statements)
            return self._query(statements[-1].name)
        return self.execute(statements[0])

    @singledispatchmethod
    def execute(self, statement: Any) -> Any:
        raise TypeError(f"no statement: {type(statement).__name__}")

    @execute.register
    def _(self, statement: st.CreateStream) -> None:
        place = {"line": statement.line, "column": statement.column}
        self._engine.create_stream(
            statement.definition, statement.or_replace, statement.if_not_exists, **place
        )

    @execute.register
    def _(self, statement: st.CreateTable) -> None:
        definition = statement.definition
        if statement.select is not None:
            answer = self.execute(statement.select)
            columns = tuple(Column(f.name, spark_type(f.type)) for f in answer.schema)
            definition = TableDefinition(
                definition.name, columns, definition.is_retroactive, definition.options
            )
        place = {"line": statement.line, "column": statement.column}
        made = self._engine.create_table(
            definition, statement.or_replace, statement.if_not_exists, **place
        )
        if made and statement.select is not None:
            self._engine.push(definition.name, answer)

    @execute.register
    def _(self, statement: st.CreateQuery) -> Any:
        return self._query(self._engine.create_query(statement).name)

    @execute.register
    def _(self, statement: st.CreateAggregate) -> None:
        self._engine.create_aggregate(statement)

    @execute.register
    def _(self, statement: st.Drop) -> None:
        place = {"line": statement.line, "column": statement.column}
        self._engine.drop(statement.kind, statement.name, statement.if_exists, **place)

    @execute.register
    def _(self, statement: st.AlterQuery) -> None:
        self._engine.alter_query(statement)

    @execute.register
    def _(self, statement: st.Insert) -> None:
        with self._engine.catalog.read() as view:
            record = view.find(statement.table)
            if isinstance(record, TableRecord):
                bound = self._bound(view, statement.select)
            elif not isinstance(record, StreamRecord):
                raise unknown(
                    view,
                    statement.table,
                    "table",
                    record,
                    line=statement.line,
                    column=statement.column,
                )
        if isinstance(record, StreamRecord):
            self._insert_into_stream(record, statement)
            return
        self._engine.change_table(record, lambda writer: writer.insert(bound, statement.columns))

    def _insert_into_stream(self, record: StreamRecord, statement: st.Insert) -> None:
        rows = self.execute(statement.select)
        names = list(statement.columns) or list(record.relation().column_names())
        if len(names) != rows.num_columns:
            raise SqlError(
                f'INSERT gives {rows.num_columns} columns, stream "{record.name}" takes {len(names)}',
                code="WEFT_COLUMN_COUNT",
            )
        self._engine.push(record.name, rows.rename_columns(names))

    @execute.register
    def _(self, statement: st.Update) -> None:
        record = self._table(statement)
        self._engine.change_table(
            record, lambda w: w.update(statement.assignments, statement.where)
        )

    @execute.register
    def _(self, statement: st.Delete) -> None:
        record = self._table(statement)
        self._engine.change_table(record, lambda w: w.delete(statement.where))

    def _table(self, statement: st.Update | st.Delete) -> TableRecord:
        with self._engine.catalog.read() as view:
            record = view.find(statement.table)
            if not isinstance(record, TableRecord):
                raise unknown(
                    view,
                    statement.table,
                    "table",
                    record,
                    line=statement.line,
                    column=statement.column,
                )
        return record

    @execute.register
    def _(self, statement: st.Select) -> Any:
        with self._engine.catalog.read() as view:
            bound = self._bound(view, statement)
            aggregates = self._engine.plans.aggregates(view)
            return pull(bound, view, self._engine.root, aggregates)

    def _bound(self, view: View, select: st.Select) -> BoundQuery:
        """A select that runs now, its user-defined aggregates written out."""
        known = self._engine.plans.aggregates(view)
        functions = user_defined(known)
        has = self._engine.plans.has_function
        names = Namespace(view)
        bound = bind(select, names, is_standing=False, functions=functions, is_other=has)
        return written_out(marked(bound, known), known)

    @execute.register
    def _(self, statement: st.Show) -> Any:
        with self._engine.catalog.read() as view:
            if statement.what == "aggregates":
                return _show_aggregates(self._engine.plans.aggregates(view))
            return SHOW[statement.what](view)

    @execute.register
    def _(self, statement: st.Describe) -> Any:
        with self._engine.catalog.read() as view:
            relation = Namespace(view).find(statement.name)
            if relation is None:
                place = {"line": statement.line, "column": statement.column}
                raise unknown(view, statement.name, "relation", None, **place)
        notes = ["event time" if c.name == relation.time_column else None for c in relation.columns]
        return _table_of(
            [("column", "STRING"), ("type", "STRING"), ("note", "STRING")],
            [(c.name, c.type, note) for c, note in zip(relation.columns, notes, strict=True)],
        )

    @execute.register
    def _(self, statement: st.Explain) -> Any:
        with self._engine.catalog.read() as view:
            if statement.name is not None:
                record = view.find(statement.name)
                if not isinstance(record, QueryRecord):
                    raise unknown(
                        view,
                        statement.name,
                        "query",
                        record,
                        line=statement.line,
                        column=statement.column,
                    )
                found = explain_query(self._engine, view, record)
            else:
                found = explain_select(self._engine, view, statement.select, statement.emit)
        lines = render(found, statement.format).split("\n")
        return _table_of([("plan", "STRING")], [(line,) for line in lines])


def _table_of(columns: list[tuple[str, str]], rows: list[tuple]) -> Any:
    """A small table. Built by DuckDB: pyarrow's own way would import pandas, for most of a second."""
    from weft.results import answers, duck

    return answers.typed(duck.values(len(columns), rows), tuple(Column(*c) for c in columns))


def _show_queries(view) -> Any:
    columns = [
        ("name", "STRING"), ("strategy", "STRING"), ("clock", "TIMESTAMP"), ("evaluations", "BIGINT"),
        ("rows_out", "BIGINT"), ("last_ms", "BIGINT"), ("error", "STRING"), ("statement", "STRING"),
    ]  # fmt: skip
    without = {2, 8}  # windows, class
    rows = [tuple(v for i, v in enumerate(row) if i not in without) for row in query_rows(view)]
    return _table_of(columns, rows)


def _show_streams(view) -> Any:
    columns = [
        ("name", "STRING"), ("source", "STRING"), ("event_time", "STRING"), ("clock", "TIMESTAMP"),
        ("rows", "BIGINT"), ("late", "BIGINT"), ("rejected", "BIGINT"), ("retain", "STRING"),
    ]  # fmt: skip
    rows = [
        (
            s.name,
            s.definition.source,
            s.definition.time_column or "arrival",
            to_instant(s.clock),
            s.rows,
            s.late,
            s.rejected,
            duration(s.definition.retain) if s.definition.retain is not None else "all",
        )
        for s in view.streams()
    ]
    return _table_of(columns, rows)


def _show_tables(view) -> Any:
    columns = [("name", "STRING"), ("kind", "STRING"), ("columns", "STRING")]
    rows = [
        (
            t.name,
            "retroactive" if t.definition.is_retroactive else "non-retroactive",
            ", ".join(f"{c.name} {c.type}" for c in t.definition.columns),
        )
        for t in view.tables()
    ]
    return _table_of(columns, rows)


def _show_aggregates(aggregates: Aggregates) -> Any:
    """Each function by its algebra (ARGUS's AggreRules and AggreBasics), with where it comes from."""
    names = ("name", "kind", "statistics", "merge", "finish", "error", "origin")
    rows = [
        (
            a.name, a.kind.value, ", ".join(a.basics) or None, ", ".join(a.merge) or None,
            a.rule or None, a.error, "built-in" if a.definition is None else "user-defined",
        )
        for a in sorted(aggregates, key=lambda a: a.name)
    ]  # fmt: skip
    return _table_of([(name, "STRING") for name in names], rows)


def _show_nothing(_view) -> Any:
    """Triggers cannot be registered yet."""
    return _table_of([("name", "STRING")], [])


SHOW = {
    "queries": _show_queries,
    "streams": _show_streams,
    "tables": _show_tables,
    "triggers": _show_nothing,
}


def spark_type(arrow) -> str:
    """The Spark SQL type of an Arrow type, for CREATE TABLE … AS SELECT."""
    import pyarrow as pa

    simple = {
        pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT",
        pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.string(): "STRING",
        pa.large_string(): "STRING", pa.binary(): "BINARY", pa.date32(): "DATE", pa.null(): "STRING",
        pa.uint8(): "SMALLINT", pa.uint16(): "INT", pa.uint32(): "BIGINT", pa.uint64(): "DECIMAL(20,0)",
    }  # fmt: skip
    if arrow in simple:
        return simple[arrow]
    if pa.types.is_timestamp(arrow):
        return "TIMESTAMP" if arrow.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(arrow):
        return f"DECIMAL({arrow.precision},{arrow.scale})"
    if pa.types.is_map(arrow):
        return f"MAP<{spark_type(arrow.key_type)},{spark_type(arrow.item_type)}>"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"ARRAY<{spark_type(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        return "STRUCT<" + ", ".join(f"{f.name}: {spark_type(f.type)}" for f in arrow) + ">"
    raise TypeProblem(f"columns of type {arrow} are not supported", hint="cast it to STRING")
