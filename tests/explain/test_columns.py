"""The columns of a step are those that running it gives."""

from pathlib import Path

import pytest

from holdfast.explain.columns import Columns, columns_of, schema_columns
from holdfast.runtime.plan.ddl import CreateStream, CreateTable
from holdfast.runtime.plan.document import Plan
from holdfast.runtime.plan.steps import (
    ExpressionText,
    SinkStep,
    Step,
    StepProperties,
    StreamSelect,
    StreamSelectKeyV1,
    sources_of,
    walk,
)
from holdfast.types import Scalar

from .plans import FOLDER, files, ours, stored

NAMES_KEYS = (7, 0)
"""Before this release ksqlDB did not write into a plan what a result's key is called."""


def columns(step: Step) -> Columns:
    return columns_of(step, [columns(source) for source in sources_of(step)])


def computed_and_declared(plan: Plan) -> tuple[Columns, Columns] | None:
    """What the steps of a plan give, and what its command declares."""
    if plan.query is None or not isinstance(plan.command, CreateStream | CreateTable):
        return None
    if not isinstance(plan.query.physical_plan, SinkStep):
        return None
    return columns(plan.query.physical_plan), schema_columns(plan.command.schema)


@pytest.mark.parametrize("name", ["LARGE", "PER_CITY", "SENIORS"])
def test_our_own_plans_give_what_they_declare(name: str):
    found = computed_and_declared(ours()[name])
    assert found is not None
    computed, declared = found
    assert computed == declared


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no conformance data in {FOLDER}")
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_plans_of_ksqldb_give_what_they_declare(file: Path):
    for release, plan in stored(file):
        found = computed_and_declared(plan)
        if found is None or (plan.query and _rereads_the_old_key(plan.query.physical_plan)):
            continue
        computed, declared = found
        version = tuple(int(part) for part in release.split(".")[:2])
        # A topic's windows are part of its key and no column of it; a later planner may order key columns differently.
        values = [(c.name, c.type) for c in computed if not c.key and c.name not in ("WINDOWSTART", "WINDOWEND")]
        wanted = [(c.name, c.type) for c in declared if not c.key and c.name not in ("WINDOWSTART", "WINDOWEND")]
        assert [name for name, _ in values] == [name for name, _ in wanted]
        known = [(a, b) for (_, a), (_, b) in zip(values, wanted, strict=True) if a is not None]
        assert all(a == b for a, b in known)
        keys, declared_keys = [c for c in computed if c.key], [c for c in declared if c.key]
        if all(c.type is not None for c in keys):
            assert sorted(str(c.type) for c in keys) == sorted(str(c.type) for c in declared_keys)
        if version >= NAMES_KEYS:
            assert {c.name for c in keys} == {c.name for c in declared_keys}


def _rereads_the_old_key(step: Step) -> bool:
    """ksqlDB 5.5 kept the old key in a column ROWKEY beside the new key of that name."""
    return any(isinstance(found, StreamSelectKeyV1) for found in walk(step))


def test_what_a_column_is_computed_from_is_shown_unless_it_is_a_copy():
    query = ours()["LARGE"].query
    assert query is not None
    project = sources_of(query.physical_plan)[0]
    assert [(c.name, str(c.type), c.key, c.expression) for c in columns(project)] == [
        ("ID", "STRING", True, None),
        ("TOWN", "STRING", False, "UCASE(CITY)"),
        ("AMOUNT", "DOUBLE", False, None),
    ]


def test_a_column_whose_type_is_not_known_keeps_its_name():
    step = StreamSelect(
        properties=StepProperties(query_context="Project"),
        source=ours_source(),
        select_expressions=(ExpressionText("NO_SUCH_FUNCTION(CITY) AS A"), ExpressionText("ROWTIME AS B")),
    )
    below = columns(step)
    assert [(c.name, c.type) for c in below if not c.key] == [("A", None), ("B", Scalar.BIGINT)]
    above = StreamSelect(properties=step.properties, source=step, select_expressions=(ExpressionText("(A + B) AS C"),))
    assert [(c.name, c.type, c.expression) for c in columns(above) if not c.key] == [("C", None, "(A + B)")]


def ours_source() -> Step:
    query = ours()["LARGE"].query
    assert query is not None
    return list(walk(query.physical_plan))[-1]


def test_a_schema_that_cannot_be_read_has_no_columns():
    assert schema_columns("`A` INTEGER KEY, `B`") == ()
    assert schema_columns("") == ()
