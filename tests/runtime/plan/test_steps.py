"""Walking a tree of steps, and the small rules of its values."""

import pytest

from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.optional import ABSENT, value_of
from holdfast.runtime.plan.steps import Step, sources_of, walk

from .documents import STEPS, STREAM, json_text, plan, step


def physical_plan(document: object) -> Step:
    found = decode(json_text.write(plan(step=document))).query
    assert found is not None
    return found.physical_plan


def test_walk_gives_each_step_before_its_sources_left_before_right():
    left = step("streamSelectKeyV2", source=STREAM)
    right = step("tableSelectV1", source=step("tableSourceV1"))
    tree = step("streamSinkV1", source=step("streamTableJoinV1", leftSource=left, rightSource=right))
    assert [found.TAG for found in walk(physical_plan(tree))] == [
        "streamSinkV1",
        "streamTableJoinV1",
        "streamSelectKeyV2",
        "streamSourceV1",
        "tableSelectV1",
        "tableSourceV1",
    ]


@pytest.mark.parametrize("tag", STEPS)
def test_every_step_knows_its_sources(tag: str):
    expected = [name for name in ("source", "leftSource", "rightSource") if name in STEPS[tag]]
    assert [found.TAG for found in sources_of(physical_plan(step(tag)))] == ["streamSourceV1"] * len(expected)


@pytest.mark.parametrize("tag", ["streamSelectKeyV2", "tableSelectKeyV1"])
@pytest.mark.parametrize(("written", "read"), [("A", ("A",)), (["A"], ("A",)), (["A", "B"], ("A", "B"))])
def test_key_expressions_are_a_list_however_they_were_written(tag: str, written: object, read: tuple[str, ...]):
    found = physical_plan(step(tag, keyExpression=written))
    assert getattr(found, "key_expressions") == read  # noqa: B009


def test_absent_and_null_are_both_not_given():
    assert value_of(ABSENT) is None
    assert value_of(None) is None
    assert value_of(0) == 0
    assert not ABSENT
    assert repr(ABSENT) == "ABSENT"


def test_a_plan_without_query_or_command_has_none():
    absent = decode(b'{"@type": "ksqlPlanV1", "statementText": ""}')
    null = decode(b'{"@type": "ksqlPlanV1", "statementText": "", "ddlCommand": null, "queryPlan": null}')
    assert absent != null
    assert (absent.command, absent.query) == (null.command, null.query) == (None, None)
