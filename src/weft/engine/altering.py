"""ALTER QUERY ... SET (...): what a query may say of itself, said again, between two batches.

Nothing is computed: the catalog's rows change in one transaction, and the pipeline, if it runs in
this process, reads the networks again before its next batch. A crash leaves all of it or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.catalog.change import Change
from weft.catalog.records import QueryRecord, dump_answer
from weft.catalog.rules import unknown
from weft.engine.answers import switch_answers
from weft.engine.keeping import with_keep
from weft.engine.selecting import switch_kept
from weft.sql.options import check_query_options
from weft.sql.statements import AlterQuery

if TYPE_CHECKING:
    from weft.engine.core import Engine


def alter_query(engine: Engine, statement: AlterQuery) -> None:
    check_query_options(statement)
    with engine.lock:
        engine.become_writer()
        with engine.catalog.write() as change:
            record = change.find(statement.name)
            if not isinstance(record, QueryRecord):
                place = {"line": statement.line, "column": statement.column}
                raise unknown(change, statement.name, "query", record, **place)
            _alter(change, record, statement)
        engine.network_changed()


def _alter(change: Change, record: QueryRecord, statement: AlterQuery) -> None:
    options = statement.options
    if "keep" in options:
        change.set_query(record.id, columns=dump_answer(with_keep(record, options)))
    if "materialize" in options:
        switch_kept(change, record, options["materialize"].lower())
    if "answers" in options:
        switch_answers(change, record, options["answers"].lower())
