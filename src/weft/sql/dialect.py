"""Spark's dialect as Weft reads it: what sqlglot would change on the way through stays verbatim.

Why: the tree is written out as Spark SQL again, and a few functions would come out as others that
give different answers: percentile_cont as an approximation, log10(x) as log(10, x) (2.999… for
1000), listagg(x) with a comma, to_char without its format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

VERBATIM = ("LOG2", "LOG10", "TO_CHAR", "TO_VARCHAR", "PARSE_JSON", "TRY_PARSE_JSON")
VERBATIM_AGGREGATES = ("PERCENTILE_CONT", "PERCENTILE_DISC", "PERCENTILE", "LISTAGG", "STRING_AGG")


def _aggregate(name: str) -> Callable[[Sequence[exp.Expression]], exp.AnonymousAggFunc]:
    return lambda args: exp.AnonymousAggFunc(this=name, expressions=list(args))


class WeftSpark(Spark):
    """Also: the text after SHOW, EXPLAIN and CALL is tokenized like any other."""

    class Tokenizer(Spark.Tokenizer):
        COMMANDS: set[TokenType] = set()  # noqa: RUF012 - sqlglot's own spelling
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - since 4.0 Spark reads 'it''s' as it's

    class Parser(Spark.Parser):
        FUNCTIONS = {  # noqa: RUF012
            **{k: v for k, v in Spark.Parser.FUNCTIONS.items() if k not in VERBATIM},
            **{name: _aggregate(name) for name in VERBATIM_AGGREGATES},
        }
        FUNCTION_PARSERS = {  # noqa: RUF012
            k: v for k, v in Spark.Parser.FUNCTION_PARSERS.items() if k not in VERBATIM_AGGREGATES
        }


DIALECT = WeftSpark()
