"""Random plans: every step, in any tree, with each optional property absent, null or present."""

from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from holdfast.runtime.plan.optional import ABSENT
from holdfast.runtime.plan.property_types import (
    ChoiceType,
    FlagType,
    IntegerType,
    ListType,
    ObjectShape,
    PropertyType,
    SecondsType,
    TaggedType,
    TextOrType,
    TextType,
)
from holdfast.runtime.plan.sql_text import EXPRESSION, NAMED_EXPRESSION, SCHEMA_TEXT, TYPE_TEXT, SqlText
from holdfast.runtime.plan.steps import STEP_TYPES, FkTableTableJoin, JoinType, SourceStep
from holdfast.runtime.plan.vocabulary import PLAN, STEP, STEP_SHAPES
from holdfast.runtime.plan.windows import Duration

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
DURATIONS = st.decimals(0, 10**9, allow_nan=False, places=9) | st.integers(0, 10**9).map(Decimal)


SQL_TEXTS = {
    SCHEMA_TEXT: [
        "",
        "`ID` INTEGER KEY",
        "`a b` ARRAY<STRUCT<`é` DECIMAL(4, 2)>>, `K` STRING KEY, `H` BYTES HEADER('x')",
    ],
    TYPE_TEXT: ["BIGINT", "MAP<STRING, STRUCT<`A` INTEGER>>"],
    EXPRESSION: ["ID", "(`a b`[1] > 'it''s <&\"\\ \x07 \n')", "null", "COUNT(ROWTIME)", "F((X) => (X + 1), A->B)"],
    NAMED_EXPRESSION: ["ID AS ID", "(CASE WHEN A THEN 1 END) as `b c`", "CAST(A AS DECIMAL(3, 1)) AS C"],
}


@cache
def values(form: PropertyType, *, flat: bool = False) -> st.SearchStrategy[Any]:
    """The values that a field of this type may have; flat trees have only sources below the root."""
    match form:
        case TextType():
            return TEXTS
        case SqlText():
            return st.sampled_from(SQL_TEXTS[form])
        case FlagType():
            return st.booleans()
        case IntegerType():
            return st.integers(0, 2**31)
        case SecondsType():
            return DURATIONS.map(Duration)
        case ChoiceType():
            return st.sampled_from(list(form.names))
        case ListType():
            return st.lists(values(form.element), max_size=2).map(tuple)
        case TextOrType():
            return values(form.text) | values(form.other)
        case ObjectShape():
            return objects(form)
        case TaggedType() if form is STEP:
            return LEAVES if flat else STEPS
        case TaggedType():
            return st.one_of([objects(shape) for shape in form.shapes().values()])
    raise AssertionError(form)


@cache
def objects(shape: ObjectShape, *, flat: bool = False) -> st.SearchStrategy[Any]:
    members = {
        row.field: values(row.value_type, flat=flat)
        if row.required
        else st.just(ABSENT) | st.none() | values(row.value_type)
        for row in shape.properties
    }
    if shape.type is not FkTableTableJoin:
        return st.builds(shape.type, **members)
    members["join_type"] = st.sampled_from([JoinType.INNER, JoinType.LEFT, JoinType.RIGHT])
    nothing = st.just(ABSENT) | st.none()
    by_column = {**members, "left_join_column_name": TEXTS, "left_join_expression": nothing}
    by_expression = {**members, "left_join_column_name": nothing, "left_join_expression": values(EXPRESSION)}
    return st.builds(shape.type, **by_column) | st.builds(shape.type, **by_expression)


SOURCES = [shape for tag, shape in STEP_SHAPES.items() if issubclass(STEP_TYPES[tag], SourceStep)]
OTHERS = [shape for shape in STEP_SHAPES.values() if shape not in SOURCES]
LEAVES: st.SearchStrategy[Any] = st.deferred(lambda: st.one_of([objects(shape) for shape in SOURCES]))
STEPS: st.SearchStrategy[Any] = st.deferred(lambda: st.one_of([objects(shape) for shape in (*SOURCES, *OTHERS)]))
PLANS = values(PLAN)
