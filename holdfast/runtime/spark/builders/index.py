"""An index: a table's rows arranged by expressions over them."""

from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.plan.steps import TableIndex
from holdfast.runtime.spark.fragment import PRESENT, TS, Fragment, column
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import Side, TableRelation
from holdfast.runtime.store.port import Layout
from holdfast.types import Scalar, SqlType


def index_layout(step: TableIndex, source: TableRelation, meaning: Meaning) -> Layout:
    """The expressions are the group of an index row; the table's key tells it from the others of its group."""
    types = _types(step, source, meaning)
    return Layout((*types, *source.key_types), tuple(c.type for c in source.value), len(types))


def build_table_index(step: TableIndex, source: TableRelation, meaning: Meaning) -> Fragment:
    """`k0.., c0.., ts, present`: each changed row leaves the place that it had, and takes the one that it has now."""
    types = _types(step, source, meaning)
    count, values = len(types), range(len(source.value))
    places = []
    for side in Side:
        texts = [meaning.spark(parse_expression(text), source.scope(side)) for text in step.index_expressions]
        places += [f"{_comparable(text, types[i])} AS {side.value}p{i}" for i, text in enumerate(texts)]
    placed = f"SELECT {', '.join(['*', *places])} FROM ({source.sql})"
    keys = [f"{key} AS k{count + i}" for i, key in enumerate(source.keys)]
    same = " AND ".join(f"bp{i} <=> ap{i}" for i in range(count)) or "true"
    columns = [column(f"k{i}", type_) for i, type_ in enumerate((*types, *source.key_types))]
    rows = [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    nothing = [f"CAST(NULL AS {row.spark}) AS {row.name}" for row in rows]
    left = [
        *(f"bp{i} AS k{i}" for i in range(count)),
        *keys,
        *nothing,
        "coalesce(a_ts, b_ts) AS ts",
        "false AS present",
    ]
    taken = [*(f"ap{i} AS k{i}" for i in range(count)), *keys, *(f"a{i} AS c{i}" for i in values)]
    sql = (
        f"SELECT {', '.join(left)} FROM ({placed}) WHERE b_present AND NOT (a_present AND {same}) UNION ALL "
        f"SELECT {', '.join([*taken, 'a_ts AS ts', 'true AS present'])} FROM ({placed}) WHERE a_present"
    )
    return Fragment(sql, (*columns, *rows, TS, PRESENT))


def _types(step: TableIndex, source: TableRelation, meaning: Meaning) -> tuple[SqlType, ...]:
    scope = source.scope(Side.AFTER)
    return tuple(meaning.type(parse_expression(text), scope) for text in step.index_expressions)


def _comparable(text: str, type_: SqlType) -> str:
    """-0.0 equals 0.0, so both have the same place."""
    return f"({text}) + 0D" if type_ is Scalar.DOUBLE else text
