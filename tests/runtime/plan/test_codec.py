"""What the codec refuses, and what it keeps."""

import json
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from types import UnionType
from typing import Any, ClassVar, NewType, get_args, get_origin, get_type_hints

import pytest

from holdfast.errors import PlanError
from holdfast.runtime.plan import steps
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.ddl import DDL_TYPES, TypeText
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.optional import Absent
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
    WireProperty,
)
from holdfast.runtime.plan.sql_text import SqlText
from holdfast.runtime.plan.steps import STEP_TYPES, ExpressionText, SchemaText, StreamFilter
from holdfast.runtime.plan.vocabulary import DDL_SHAPES, STEP_SHAPES
from holdfast.runtime.plan.windows import Duration

from .documents import COMMANDS, KAFKA_JSON, STEPS, STREAM, Sample, plan, samples, step

SAMPLES = list(samples())
ROWS = [pytest.param(sample, row, id=f"{sample}-{row.name}") for sample in SAMPLES for row in sample.shape.properties]
FOREIGN_KEY = "fkTableTableJoinV1-leftJoinExpression"
"""Optional, but the sample has no other foreign key."""

REQUIRED = [case for case in ROWS if case.values[1].required]
OPTIONAL = [case for case in ROWS if not case.values[1].required and case.id != FOREIGN_KEY]


def document(value: object) -> bytes:
    return json.dumps(value).encode()


def refusal(text: bytes) -> PlanError:
    with pytest.raises(PlanError) as caught:
        decode(text)
    return caught.value


OURS = {"windowStoreSourceV1", "collectionSourceV1", "tableKeepV1", "tableIndexV1"}
"""The steps that ksqlDB does not have."""


def test_the_vocabulary_is_complete():
    assert len(STEP_TYPES.keys() - OURS) == 28
    assert STEP_TYPES.keys() == STEP_SHAPES.keys() == STEPS.keys()
    assert DDL_TYPES.keys() == DDL_SHAPES.keys() == COMMANDS.keys()
    assert {tag: shape.type for tag, shape in STEP_SHAPES.items()} == STEP_TYPES
    assert {tag: shape.type for tag, shape in DDL_SHAPES.items()} == DDL_TYPES


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_minimal_document_round_trips(sample: Sample):
    assert json.loads(encode(decode(sample.edited()))) == json.loads(sample.edited())


@pytest.mark.parametrize(("sample", "row"), REQUIRED)
def test_a_missing_required_property_is_named(sample: Sample, row: WireProperty):
    error = refusal(sample.edited(**{row.name: ...}))
    assert error.message == f'property "{row.name}" of {sample.shape.name} is missing'
    assert error.detail is not None
    assert error.detail.startswith(f"At {sample.path}.{row.name}")


@pytest.mark.parametrize(("sample", "row"), REQUIRED)
def test_a_required_property_cannot_be_null(sample: Sample, row: WireProperty):
    error = refusal(sample.edited(**{row.name: None}))
    assert error.message == f'property "{row.name}" of {sample.shape.name} cannot be null'


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_an_unknown_property_is_named(sample: Sample):
    error = refusal(sample.edited(surprise=1))
    assert error.message == f'property "surprise" of {sample.shape.name} is unknown'
    assert error.detail is not None
    assert error.detail.startswith(f"At {sample.path}.surprise")


@pytest.mark.parametrize(("sample", "row"), OPTIONAL)
def test_an_optional_property_may_be_null_and_stays_so(sample: Sample, row: WireProperty):
    written = json.loads(encode(decode(sample.edited(**{row.name: None}))))
    assert written == json.loads(sample.edited(**{row.name: None}))


WRONG: dict[type[PropertyType], Any] = {
    TextType: 5,
    SqlText: 5,
    FlagType: "true",
    IntegerType: Decimal("1.5"),
    SecondsType: "1",
    ChoiceType: "NOPE",
    ListType: "x",
    TextOrType: 5,
    ObjectShape: [],
    TaggedType: "x",
}


@pytest.mark.parametrize(("sample", "row"), ROWS)
def test_a_value_of_the_wrong_kind_is_named(sample: Sample, row: WireProperty):
    error = refusal(sample.edited(**{row.name: WRONG[type(row.value_type)]}))
    assert error.message.startswith(f'property "{row.name}" of {sample.shape.name} ')
    assert error.detail is not None
    assert error.detail.startswith(f"At {sample.path}.{row.name}")


@pytest.mark.parametrize(("sample", "row"), ROWS)
def test_every_row_fits_the_field_it_fills(sample: Sample, row: WireProperty):
    owner: Any = sample.shape.type
    assert [row.field for row in sample.shape.properties] == [field.name for field in fields(owner)]
    (field,) = [field for field in fields(owner) if field.name == row.field]
    hint = get_type_hints(owner)[row.field]
    optional = Absent in get_args(hint)
    assert row.required is (field.default is MISSING)
    assert row.required is not optional
    assert fits(row.value_type, hint)


def fits(form: PropertyType, hint: Any) -> bool:
    """Whether values of a form have the type that a field declares."""
    choices = [part for part in get_args(hint) if part not in (Absent, type(None))] if is_union(hint) else [hint]
    if isinstance(form, TextOrType):
        texts = [part for part in choices if base(part) is str]
        rest = [part for part in choices if base(part) is not str]
        return all(fits(form.text, part) for part in texts) and all(fits(form.other, part) for part in rest)
    if isinstance(form, TaggedType):
        return {shape.type for shape in form.shapes().values()} >= set(choices)
    (only,) = choices
    plain = {TextType: str, SqlText: str, FlagType: bool, IntegerType: int, SecondsType: Duration}
    match form:
        case ChoiceType():
            return form.names is only and issubclass(only, StrEnum)
        case ListType():
            return get_origin(only) is tuple and fits(form.element, get_args(only)[0])
        case ObjectShape():
            return form.type is only and is_dataclass(only)
        case _:
            return plain[type(form)] is base(only)


def is_union(hint: Any) -> bool:
    return isinstance(hint, UnionType) or str(get_origin(hint)) == "typing.Union"


def base(hint: Any) -> Any:
    return hint.__supertype__ if isinstance(hint, NewType) else hint


def texts_of(form: PropertyType) -> PropertyType:
    """The form of the texts that a property holds."""
    match form:
        case TextOrType():
            return form.text
        case ListType():
            return texts_of(form.element)
        case _:
            return form


TEXTS = [case for case in ROWS if isinstance(texts_of(case.values[1].value_type), SqlText)]


@pytest.mark.parametrize(("sample", "row"), TEXTS)
def test_a_text_that_cannot_be_read_is_named(sample: Sample, row: WireProperty):
    """Also the one bad element of a list, and whatever the text is: a schema, a type, an expression."""
    form = texts_of(row.value_type)
    assert isinstance(form, SqlText)
    many = isinstance(row.value_type.other if isinstance(row.value_type, TextOrType) else row.value_type, ListType)
    error = refusal(sample.edited(**{row.name: ["(1"] if many else "(1"}))
    named = f'property "{row.name}" of {sample.shape.name}'
    assert error.message.startswith(f"{'element 0 of ' if many else ''}{named} is not {form.kind}: ")
    assert error.detail is not None
    assert error.detail.startswith(f"At {sample.path}.{row.name}")


def test_every_text_of_sql_is_read():
    """Schemas, types and expressions have types of their own, and no field of these is taken unread."""
    kinds = {SchemaText, TypeText, ExpressionText}
    for sample in SAMPLES:
        hints = get_type_hints(sample.shape.type)
        for row in sample.shape.properties:
            found = parts_of(hints[row.field]) & kinds
            assert bool(found) == isinstance(texts_of(row.value_type), SqlText), (sample, row.name)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("`A` INTEGER KEY, `B`", "syntax error at the end of the text, at column 21 of the text"),
        ("`A` INTEGRE", 'type "INTEGRE" does not exist, at column 5 of the text'),
    ],
)
def test_a_bad_schema_says_where_in_its_text(schema: str, problem: str):
    error = refusal(document(plan(step=step("streamSourceV1", sourceSchema=schema))))
    assert error.message == f'property "sourceSchema" of streamSourceV1 is not a schema: {problem}'


@pytest.mark.parametrize(
    ("members", "message", "hint"),
    [
        (
            {"joinType": "INER"},
            'property "joinType" of streamTableJoinV1 cannot be "INER"',
            'Did you mean "INNER"?',
        ),
        (
            {"internalFormats": {**KAFKA_JSON, "keyFeatures": ["WRAP_SINGLES", "NOPE"]}},
            'element 1 of property "keyFeatures" of Formats cannot be "NOPE"',
            "Known values are: SCHEMA_INFERENCE, WRAP_SINGLES, UNWRAP_SINGLES.",
        ),
    ],
)
def test_the_error_for_an_unknown_member_lists_the_known_ones(members: dict[str, Any], message: str, hint: str):
    error = refusal(document(plan(step=step("streamTableJoinV1", **members))))
    assert (error.message, error.hint) == (message, hint)


def parts_of(hint: Any) -> set[Any]:
    """Every type that a hint is made of."""
    return {hint, *(part for argument in get_args(hint) for part in parts_of(argument))}


CLASSES = [*STEP_TYPES.values(), *DDL_TYPES.values(), Plan, QueryPlan]
EXACT = {str, int, bool, type(None), Absent, Ellipsis}
"""What a field may be made of besides classes of the vocabulary and names for texts."""


@pytest.mark.parametrize("owner", CLASSES, ids=lambda owner: owner.__name__)
def test_no_field_is_a_dict_or_anything(owner: type):
    """Down to the last: tuples, unions, enums, classes of the vocabulary and texts; nothing open."""
    seen: set[Any] = set()
    waiting: list[Any] = [owner]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if is_dataclass(each):
            waiting += get_type_hints(each, vars(steps)).values()
        elif get_args(each):
            assert get_origin(each) in (tuple, ClassVar) or is_union(each), each
            waiting += get_args(each)
        else:
            known = each in EXACT or (isinstance(each, type) and issubclass(each, StrEnum | Decimal))
            assert known or isinstance(each, NewType), each
            waiting += [each.__supertype__] if isinstance(each, NewType) else []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("streamGroupByV1", "streamGroupByV2"),
        ("tableGroupByV1", "tableGroupByV2"),
        ("streamSelectKeyV1", "streamSelectKeyV2"),
        ("tableSourceV1", "tableSourceV2"),
    ],
)
def test_a_superseded_step_is_a_class_of_its_own(old: str, new: str):
    """Neither is read as the other, and the name says which is which."""
    first, second = STEP_TYPES[old], STEP_TYPES[new]
    assert first.__name__ == f"{second.__name__}V1"
    assert not issubclass(first, second)
    assert not issubclass(second, first)
    whole = decode(document(plan(step=step(old))))
    assert whole.query is not None
    assert type(whole.query.physical_plan) is first
    assert json.loads(encode(whole))["queryPlan"]["physicalPlan"]["@type"] == old


def test_an_unknown_step_says_where_and_what_was_meant():
    error = refusal(document(plan(step={**STREAM, "@type": "streamSourceV9"})))
    assert str(error) == (
        'step type "streamSourceV9" is unknown\n'
        "DETAIL: At $.queryPlan.physicalPlan.\n"
        'HINT: Did you mean "streamSourceV1"?'
    )


def test_an_unknown_property_of_a_nested_object_says_which_step_has_it():
    filtered = step("streamFilterV1", source={**STREAM, "formats": {**KAFKA_JSON, "keyFeature": []}})
    assert str(refusal(document(plan(step=filtered)))) == (
        'property "keyFeature" of Formats is unknown\n'
        "DETAIL: At $.queryPlan.physicalPlan.source.formats.keyFeature, in streamSourceV1.\n"
        'HINT: Did you mean "keyFeatures"?'
    )


def test_a_wrong_element_of_a_list_is_counted_from_zero():
    error = refusal(document(plan(step=step("streamSelectV1", selectExpressions=["A AS A", None]))))
    assert str(error) == (
        'element 1 of property "selectExpressions" of streamSelectV1 must be a string, not null\n'
        "DETAIL: At $.queryPlan.physicalPlan.selectExpressions[1]."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "plan is not valid JSON\nDETAIL: Expecting value, at line 1, column 1."),
        (b"{} {}", "plan is not valid JSON\nDETAIL: Extra data, at line 1, column 4."),
        (b'"\xff"', "plan is not valid UTF-8\nDETAIL: The byte at offset 1 is invalid."),
        (b'"\\ud800"', "plan is not valid Unicode\nDETAIL: It contains an unpaired surrogate."),
        (b'{"a": 1, "a": 1}', 'plan is not valid JSON\nDETAIL: An object has the property "a" twice.'),
        (b"NaN", "plan is not valid JSON\nDETAIL: NaN is not a JSON number."),
        (b"1e99999999999999999999", "plan is not valid JSON\nDETAIL: It contains a number that is out of range."),
        (b"1" * 5000, "plan is not valid JSON\nDETAIL: It contains a number that is out of range."),
        (b"[" * 100_000, "plan is nested too deeply"),
        (b"[]", "plan must be an object, not a list\nDETAIL: At $."),
        (b"{}", 'property "@type" of a plan is missing\nDETAIL: At $.@type.'),
        (b'{"@type": 1}', 'property "@type" of a plan must be a string, not a number\nDETAIL: At $.@type.'),
        (
            b'{"@type": "ksqlPlanV2"}',
            'plan type "ksqlPlanV2" is unknown\nDETAIL: At $.\nHINT: Did you mean "ksqlPlanV1"?',
        ),
    ],
    ids=str,
)
def test_what_is_no_plan_is_refused(text: bytes, message: str):
    assert str(refusal(text)) == message


def test_a_plan_nested_too_deeply_is_refused_on_both_ways():
    deep = b'{"@type":"streamFilterV1","properties":{"queryContext":""},"filterExpression":"A","source":'
    text = document(plan(step=STREAM)).replace(document(STREAM), deep * 5000 + document(STREAM) + b"}" * 5000)
    assert refusal(text).message == "plan is nested too deeply"
    whole = decode(document(plan(step=step("streamFilterV1"))))
    assert whole.query is not None
    nested = whole.query.physical_plan
    assert isinstance(nested, StreamFilter)
    for _ in range(5000):
        nested = StreamFilter(properties=nested.properties, source=nested, filter_expression=nested.filter_expression)
    object.__setattr__(whole.query, "physical_plan", nested)
    with pytest.raises(PlanError, match="nested too deeply"):
        encode(whole)


def test_a_hundred_steps_are_not_too_deep():
    nested = STREAM
    for _ in range(100):
        nested = step("streamFilterV1", source=nested)
    assert json.loads(encode(decode(document(plan(step=nested))))) == plan(step=nested)


def join(before: str) -> bytes:
    with_mark = document(plan(step=step("streamStreamJoinV1", beforeMillis=12345, afterMillis=1)))
    return with_mark.replace(b"12345", before.encode())


@pytest.mark.parametrize("number", ["0", "1", "1.0", "0.000000000", "10.000000000", "0.002000000", "9e5", "1E+2"])
def test_a_duration_keeps_its_scale(number: str):
    written = json.loads(encode(decode(join(number))), parse_float=Decimal, parse_int=Decimal)
    assert written["queryPlan"]["physicalPlan"]["beforeMillis"].as_tuple() == Decimal(number).as_tuple()


@pytest.mark.parametrize("number", ["-1", "1.0000000001", "1e400", "1e-999999999", "9223372036854775808"])
def test_what_is_no_duration_is_refused(number: str):
    error = refusal(join(number))
    assert error.message.startswith('property "beforeMillis" of streamStreamJoinV1 must be a number of seconds')


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"leftJoinExpression": None}, "needs exactly one of leftJoinColumnName and leftJoinExpression"),
        ({"leftJoinColumnName": "A"}, "needs exactly one of leftJoinColumnName and leftJoinExpression"),
        ({"joinType": "OUTER"}, "cannot have joinType OUTER"),
    ],
)
def test_a_foreign_key_join_has_one_foreign_key_and_no_outer_side(members: dict[str, Any], problem: str):
    error = refusal(document(plan(step=step("fkTableTableJoinV1", **members))))
    assert str(error) == f"fkTableTableJoinV1 {problem}\nDETAIL: At $.queryPlan.physicalPlan."


def test_properties_are_written_in_the_order_of_ksqldb():
    text = encode(decode(document(plan(step=step("streamSinkV1"), command={"@type": "dropTypeV1", "typeName": "A"}))))
    assert list(json.loads(text)) == ["@type", "statementText", "ddlCommand", "queryPlan"]
    assert list(json.loads(text)["queryPlan"]["physicalPlan"]) == [
        "@type",
        "properties",
        "source",
        "formats",
        "topicName",
    ]


def test_text_beyond_ascii_is_kept_as_it_is():
    text = encode(decode(document(plan(step=step("streamFilterV1", filterExpression="(A = '東京 \U0001f600')")))))
    assert "(A = '東京 \U0001f600')".encode() in text


def test_half_a_surrogate_pair_cannot_be_written():
    half = plan(step=STREAM)
    whole = decode(document(half))
    object.__setattr__(whole, "statement_text", "\ud800")
    with pytest.raises(PlanError, match="not valid Unicode"):
        encode(whole)
