"""PARTITION BY: give rows another key. A stream keeps the order of its input."""

from holdfast.errors import PlanError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.tree import ColumnRef, Expression, NullLiteral
from holdfast.runtime.plan.steps import StreamSelectKey, StreamSelectKeyV1, TableSelectKey
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import StreamRelation, TableRelation
from holdfast.runtime.spark.skips import Skip, skip_unless
from holdfast.types import Column, Role


def build_stream_select_key(
    step: StreamSelectKey, source: StreamRelation, compiler: ExpressionCompiler
) -> StreamRelation:
    """The old key becomes a value. A NULL literal as the key removes it."""
    expressions = [e for e in map(parse_expression, step.key_expressions) if not isinstance(e, NullLiteral)]
    scope = source.scope()
    key = tuple(Column(_name(e, i), compiler.type(e, scope), Role.KEY) for i, e in enumerate(expressions))
    return _rekeyed(source, key, [_key_sql(e, source, compiler) for e in expressions])


def build_stream_select_key_v1(
    step: StreamSelectKeyV1, source: StreamRelation, compiler: ExpressionCompiler
) -> StreamRelation:
    """A row without the new key is skipped. Both keys are named ROWKEY; later steps mean the old one, now a value."""
    expression = parse_expression(step.key_expression)
    scope = source.scope()
    key = (Column("ROWKEY", compiler.type(expression, scope), Role.KEY),)
    keyed = _rekeyed(source, key, [_key_sql(expression, source, compiler)], hides=False)
    return skip_unless(keyed, "k0 IS NOT NULL", Skip.NO_NEW_KEY)


def _key_sql(expression: Expression, source: StreamRelation, compiler: ExpressionCompiler) -> str:
    """The SQL of a key; NULL for a record without a value, if the key depends on the value."""
    text = compiler.spark(expression, source.scope())
    key_names = {column.name for column in source.key} - {column.name for column in source.value}
    return text if references(expression) <= key_names else f"IF(present, {text}, NULL)"


def build_table_select_key(step: TableSelectKey, source: TableRelation) -> TableRelation:
    """Accepts only the table's own key: ksqlDB writes such a step where a join needs the key in another format."""
    key = [ColumnRef(column.name) for column in source.key]
    if [parse_expression(text) for text in step.key_expressions] != key or source.window is not None:
        raise PlanError(
            f"the key of the table at {step.properties.query_context} cannot be changed",
            detail="Several rows of the table could have the same new key.",
            hint="Group the table by the new key, and aggregate.",
        )
    return source


def _rekeyed(source: StreamRelation, key: tuple[Column, ...], sql: list[str], *, hides: bool = True) -> StreamRelation:
    """The rows under a new key, which hides old key columns of the same name."""
    taken = {column.name for column in (*source.value, *(key if hides else ()))}
    old = [(col.key(i), Column(c.name, c.type)) for i, c in enumerate(source.key) if c.name not in taken]
    first = len(source.value)
    # A bad row gets no key: an expression could compute one from its nulls.
    chosen = [f"IF(bad > 0, NULL, {text}) AS {col.key(i)}" for i, text in enumerate(sql)]
    chosen += [*source.values, *(f"{name} AS {col.value(first + i)}" for i, (name, _) in enumerate(old))]
    value = (*source.value, *(column for _, column in old))
    rows = f"SELECT {', '.join([*chosen, *source.rest])} FROM ({source.sql})"
    return StreamRelation(rows, key, value, source.headers)


def _name(expression: Expression, index: int) -> str:
    return expression.name if isinstance(expression, ColumnRef) else f"KSQL_COL_{index}"
