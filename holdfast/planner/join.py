"""The steps of joins: each input gets the join key, its columns are renamed to `ALIAS_NAME`, and the inputs are joined.

Inputs are named by their position in the tree: the left input of the last join is `Left`; if that is a join itself, its
inputs are `L_Left` and `L_Right`.
"""

from holdfast.planner.node import Node
from holdfast.planner.rekey import rekey
from holdfast.planner.source import plan_source
from holdfast.runtime.expressions.tree import ColumnRef, Expression, NamedExpression
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.steps import (
    FkTableTableJoin,
    JoinType,
    Step,
    StreamSelect,
    StreamStreamJoin,
    StreamTableJoin,
    TableSelect,
    TableTableJoin,
)
from holdfast.runtime.plan.windows import Duration
from holdfast.sql.plan_text import columns_text, context, expression_text
from holdfast.sql.properties.formats import KAFKA, NO_PROPERTIES, NONE
from holdfast.sql.query.joins import BoundInput, BoundJoin, equal_to_key, sources_of
from holdfast.sql.query.relation import BoundSource, joined_name
from holdfast.sql.syntax.walk import rewrite
from holdfast.types import Column


def plan_join(join: BoundJoin) -> Node:
    """The rows of a query's joins."""
    return _join(join, "", _key_format(join))


def _join(join: BoundJoin, prefix: str, key_format: FormatInfo) -> Node:
    left = _side(join, join.left, join.left_key, f"{prefix}Left", f"{prefix}L_", key_format)
    right = _side(join, join.right, join.right_key, f"{prefix}Right", f"{prefix}R_", key_format)
    if join.foreign_key:
        key = left.key
        rest = [column for column in left.key if column not in left.value]
    else:
        key = (Column(join.key, left.key[0].type),)
        rest = [column for column in key if column.name not in {c.name for c in (*left.value, *right.value)}]
    return Node(
        step=_step(join, left, right, f"{prefix}Join"),
        stream=left.stream or right.stream,
        key=key,
        value=(*left.value, *right.value, *rest),
        key_format=left.key_format,
        value_format=left.value_format,
        window=left.window,
    )


def _side(join: BoundJoin, side: BoundInput, key: Expression, name: str, prefix: str, key_format: FormatInfo) -> Node:
    """One input, keyed by its side of the join condition, with its columns renamed."""
    path = f"{name}SourceKeyed"
    if isinstance(side, BoundJoin):
        node = _join(side, prefix, key_format)
        if join.foreign_key or key in equal_to_key(side):
            return node
        return rekey(node, (_prefixed(key),), path, key_format)
    node = plan_source(side.object, f"KafkaTopic_{name}")
    if not join.foreign_key:
        node = rekey(node, (_bare(key),), path, key_format)
    return _prepend(node, side, f"PrependAlias{name}")


def _prepend(node: Node, source: BoundSource, path: str) -> Node:
    def renamed(column: Column) -> Column:
        return Column(joined_name(source.alias, column.name), column.type, column.role)

    expressions = columns_text(
        NamedExpression(joined_name(source.alias, column.name), ColumnRef(column.name)) for column in node.value
    )
    keys = tuple(joined_name(source.alias, name) for name in node.key_names)
    step: Step
    if node.stream:
        step = StreamSelect(
            properties=context(path),
            source=node.step,
            key_column_names=keys,
            selected_keys=None,
            select_expressions=expressions,
        )
    else:
        step = TableSelect(
            properties=context(path),
            source=node.step,
            key_column_names=keys,
            select_expressions=expressions,
            internal_formats=node.formats,
        )
    return Node(
        step=step,
        stream=node.stream,
        key=tuple(map(renamed, node.key)),
        value=tuple(map(renamed, node.value)),
        key_format=node.key_format,
        value_format=node.value_format,
        window=node.window,
    )


def _step(join: BoundJoin, left: Node, right: Node, path: str) -> Step:
    properties = context(path)
    if left.stream and right.stream:
        assert join.within is not None
        return StreamStreamJoin(
            properties=properties,
            join_type=join.kind,
            left_internal_formats=left.formats,
            right_internal_formats=right.formats,
            left_source=left.step,
            right_source=right.step,
            before=Duration.of(join.within.before.timedelta),
            after=Duration.of(join.within.after.timedelta),
            grace=Duration.of(join.within.grace.timedelta) if join.within.grace is not None else None,
            key_column_name=join.key,
        )
    if left.stream:
        return StreamTableJoin(
            properties=properties,
            join_type=join.kind,
            internal_formats=left.formats,
            left_source=left.step,
            right_source=right.step,
            key_column_name=join.key,
        )
    if join.foreign_key:
        assert join.kind is not JoinType.OUTER
        return FkTableTableJoin(
            properties=properties,
            join_type=join.kind,
            left_join_column_name=None,
            formats=left.formats,
            left_source=left.step,
            right_source=right.step,
            left_join_expression=expression_text(_prefixed(join.left_key)),
        )
    return TableTableJoin(
        properties=properties,
        join_type=join.kind,
        left_source=left.step,
        right_source=right.step,
        key_column_name=join.key,
    )


# ---- formats


def _key_format(join: BoundJoin) -> FormatInfo:
    """The key format of both inputs: that of the first input, left before right, which needs no new key."""
    preferred = _preferred(join)
    if preferred is not None:
        return preferred
    every = (source.object.formats.key_format for source in sources_of(join))
    return next((info for info in every if info.format != NONE), FormatInfo(format=KAFKA, properties=NO_PROPERTIES))


def _preferred(join: BoundJoin) -> FormatInfo | None:
    for side, key in ((join.left, join.left_key), (join.right, join.right_key)):
        if isinstance(side, BoundJoin):
            found = _preferred(side) if key in equal_to_key(side) else None
        elif join.foreign_key or key in equal_to_key(side):
            found = side.object.formats.key_format
        else:
            found = None
        if found is not None:
            return found
    return None


# ---- names


def _bare(qualified: Expression) -> Expression:
    """The expression without qualifiers, over the rows of a single source."""
    return rewrite(
        qualified, lambda node: ColumnRef(node.name, None, node.position) if isinstance(node, ColumnRef) else None
    )


def _prefixed(qualified: Expression) -> Expression:
    """The expression over joined rows, whose columns are `ALIAS_NAME`."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.qualifier is not None:
            return ColumnRef(joined_name(node.qualifier, node.name), None, node.position)
        return None

    return rewrite(qualified, change)
