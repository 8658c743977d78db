"""PARTITION BY: give rows another key. The order of a stream stays that of its input."""

from holdfast.errors import PlanError
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.tree import ColumnRef, Expression, NullLiteral
from holdfast.runtime.plan.steps import StreamSelectKey, StreamSelectKeyV1, TableSelectKey
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import StreamRelation, TableRelation
from holdfast.runtime.spark.skipping import Skip, skipping
from holdfast.types import Column, Role


def build_stream_select_key(step: StreamSelectKey, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    """The old key stays readable as a value. NULL for a key is none at all."""
    expressions = [e for e in map(parse_expression, step.key_expressions) if not isinstance(e, NullLiteral)]
    scope = source.scope()
    key = tuple(Column(_name(e, i), meaning.type(e, scope), Role.KEY) for i, e in enumerate(expressions))
    return _rekeyed(source, key, [_key_sql(e, source, meaning) for e in expressions])


def build_stream_select_key_v1(step: StreamSelectKeyV1, source: StreamRelation, meaning: Meaning) -> StreamRelation:
    """A row without the new key is skipped. Both keys are called ROWKEY: steps above mean the old one, a value now."""
    expression = parse_expression(step.key_expression)
    scope = source.scope()
    key = (Column("ROWKEY", meaning.type(expression, scope), Role.KEY),)
    keyed = _rekeyed(source, key, [_key_sql(expression, source, meaning)], hides=False)
    return skipping(keyed, "k0 IS NOT NULL", Skip.NO_NEW_KEY)


def _key_sql(expression: Expression, source: StreamRelation, meaning: Meaning) -> str:
    """A record without a value has no key that its value decides."""
    text = meaning.spark(expression, source.scope())
    own = {column.name for column in source.key} - {column.name for column in source.value}
    return text if references(expression) <= own else f"IF(present, {text}, NULL)"


def build_table_select_key(step: TableSelectKey, source: TableRelation) -> TableRelation:
    """A table's own key again: ksqlDB writes such a step where a join needs the key in another format."""
    own = [ColumnRef(column.name) for column in source.key]
    if [parse_expression(text) for text in step.key_expressions] != own or source.window is not None:
        raise PlanError(
            f"the table at {step.properties.query_context} would get another key",
            detail="Two of its rows could have the same new key, and then none is the row of that key.",
            hint="Group the table by the new key, and aggregate.",
        )
    return source


def _rekeyed(source: StreamRelation, key: tuple[Column, ...], sql: list[str], *, hides: bool = True) -> StreamRelation:
    """The rows under a new key, which hides old key columns of the same name."""
    taken = {column.name for column in (*source.value, *(key if hides else ()))}
    old = [(f"k{i}", Column(c.name, c.type)) for i, c in enumerate(source.key) if c.name not in taken]
    first = len(source.value)
    # A bad row has no key: an expression could make one of its nulls.
    chosen = [f"IF(bad > 0, NULL, {text}) AS k{i}" for i, text in enumerate(sql)]
    chosen += [*source.values, *(f"{name} AS c{first + i}" for i, (name, _) in enumerate(old))]
    value = (*source.value, *(column for _, column in old))
    rows = f"SELECT {', '.join([*chosen, *source.rest])} FROM ({source.sql})"
    return StreamRelation(rows, key, value, source.headers)


def _name(expression: Expression, index: int) -> str:
    return expression.name if isinstance(expression, ColumnRef) else f"KSQL_COL_{index}"
