"""Table functions: each row becomes as many rows as its longest array has elements, side by side."""

from dataclasses import replace

from holdfast.errors import PlanError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.calls import BoundTableFunction, bind_table_function
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Call
from holdfast.runtime.plan.steps import StreamFlatMap
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.types import Column


def build_stream_flat_map(step: StreamFlatMap, source: StreamRelation, compiler: ExpressionCompiler) -> StreamRelation:
    """The results are columns `KSQL_SYNTH_n`; shorter arrays are padded with nulls."""
    scope, first = source.scope(), len(source.value)
    calls = [_bound(text, scope, compiler) for text in step.table_functions]
    new = tuple(Column(f"KSQL_SYNTH_{i}", call.returns) for i, call in enumerate(calls))
    # A bad row has no arrays; it stays one row, to be counted.
    arrays = [f"IF(bad > 0, array(NULL), coalesce({call.rows}, array()))" for call in calls]
    named = ", ".join(f"a{i}" for i in range(len(calls)))
    listed = ", ".join(f"{array} AS a{i}" for i, array in enumerate(arrays))
    inner = f"SELECT *, {listed} FROM ({source.sql}) WHERE bad > 0 OR present"
    zipped = f"SELECT *, explode(arrays_zip({named})) AS z FROM ({inner})"
    values = [*source.values, *(f"z.a{i} AS {col.value(first + i)}" for i in range(len(calls)))]
    sql = f"SELECT {', '.join([*source.keys, *values, *source.rest])} FROM ({zipped})"
    return replace(source, sql=sql, value=source.value + new)


def _bound(text: str, scope: Scope, compiler: ExpressionCompiler) -> BoundTableFunction:
    call = parse_expression(text)
    if not isinstance(call, Call):
        raise PlanError(f"{text} is not a call of a table function")
    return bind_table_function(call, scope, release=compiler.release)
