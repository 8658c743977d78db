"""An index: a table's rows arranged by expressions over them."""

from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.fragment import PRESENT, TS, Fragment, key_columns, value_columns
from holdfast.runtime.physical_columns import AFTER, Side
from holdfast.runtime.plan.steps import TableIndex
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import TableRelation
from holdfast.runtime.store.port import Layout
from holdfast.types import Scalar, SqlType


def index_layout(step: TableIndex, source: TableRelation, compiler: ExpressionCompiler) -> Layout:
    """The expressions are the group of an index row; the table's key identifies the row within its group."""
    types = _types(step, source, compiler)
    return Layout((*types, *source.key_types), tuple(c.type for c in source.value), len(types))


def build_table_index(step: TableIndex, source: TableRelation, compiler: ExpressionCompiler) -> Fragment:
    """`k0.., c0.., ts, present`: each changed row is deleted under its old index key and written under its new one."""
    types = _types(step, source, compiler)
    count, values = len(types), range(len(source.value))
    index_keys = []
    for side in Side:
        texts = [compiler.spark(parse_expression(text), source.scope(side)) for text in step.index_expressions]
        index_keys += [f"{_comparable(text, types[i])} AS {side.value}{col.partial(i)}" for i, text in enumerate(texts)]
    indexed = f"SELECT {', '.join(['*', *index_keys])} FROM ({source.sql})"
    keys = [f"{key} AS {col.key(count + i)}" for i, key in enumerate(source.keys)]
    same = " AND ".join(f"bp{i} <=> ap{i}" for i in range(count)) or "true"
    columns = key_columns((*types, *source.key_types))
    rows = value_columns(c.type for c in source.value)
    nulls = [f"CAST(NULL AS {row.spark}) AS {row.name}" for row in rows]
    deleted = [
        *(f"bp{i} AS {col.key(i)}" for i in range(count)),
        *keys,
        *nulls,
        "coalesce(a_ts, b_ts) AS ts",
        "false AS present",
    ]
    written = [
        *(f"ap{i} AS {col.key(i)}" for i in range(count)),
        *keys,
        *(f"{AFTER.column(i)} AS {col.value(i)}" for i in values),
    ]
    sql = (
        f"SELECT {', '.join(deleted)} FROM ({indexed}) WHERE b_present AND NOT (a_present AND {same}) UNION ALL "
        f"SELECT {', '.join([*written, 'a_ts AS ts', 'true AS present'])} FROM ({indexed}) WHERE a_present"
    )
    return Fragment(sql, (*columns, *rows, TS, PRESENT))


def _types(step: TableIndex, source: TableRelation, compiler: ExpressionCompiler) -> tuple[SqlType, ...]:
    scope = source.scope(Side.AFTER)
    return tuple(compiler.type(parse_expression(text), scope) for text in step.index_expressions)


def _comparable(text: str, type_: SqlType) -> str:
    """-0.0 equals 0.0, so both must have the same index key."""
    return f"({text}) + 0D" if type_ is Scalar.DOUBLE else text
