"""Every step, join, window, format and function has a case in tests/queries that runs it.

The cases' statements are planned, not searched: what counts is what the plans hold.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import product
from typing import Any

import pytest
from test_queries import FOLDER, Case, cases

from holdfast.catalog.commands import decode_command, encode_command
from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import EMPTY
from holdfast.planner.commands import commands_for
from holdfast.runtime.expressions.parse import parse_expression, parse_named
from holdfast.runtime.expressions.tree import Call, Expression, NamedExpression
from holdfast.runtime.functions.registry import functions
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.formats import SerdeFeature
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import (
    STEP_TYPES,
    FkTableTableJoin,
    JoinStep,
    JoinType,
    SinkStep,
    Step,
    StreamGroupByV1,
    StreamSelectKeyV1,
    StreamTableJoin,
    StreamWindowedAggregate,
    TableGroupByV1,
    TableSourceV1,
    TableSuppress,
    TopicSourceStep,
    WindowedSourceStep,
    WindowedStreamSource,
    WindowStoreSource,
    walk,
)
from holdfast.runtime.plan.windows import OutputRefinement, WindowType
from holdfast.sql.bind.statement import bind
from holdfast.sql.properties.formats import FORMATS, NONE
from holdfast.sql.syntax.parse import statements

UNPLANNED_STEPS = (
    StreamGroupByV1,
    StreamSelectKeyV1,
    TableGroupByV1,
    TableSourceV1,
    TableSuppress,
)
"""Steps of older plans and of ksqlDB's that no statement plans; tests/runtime/test_older_steps.py runs them."""

UNKNOWN_JOINS = tuple(product((StreamTableJoin, FkTableTableJoin), (JoinType.RIGHT, JoinType.OUTER)))
"""Joins that the language does not have."""

WRITTEN = tuple(name for name in FORMATS if name != NONE)
"""Formats that a result can have: it has at least one value column."""


def planned(case: Case) -> Iterator[Step]:
    """The steps of every query that a case starts."""
    catalog, commands = EMPTY, []
    for parsed in statements(case.sql):
        bound = bind(parsed.statement, catalog)
        commands += map(encode_command, commands_for(bound, text=parsed.text, number=len(commands)))
        catalog = fold(decode_command(key, value) for key, value in commands)
    for entry in catalog.queries.values():
        query = decode(entry.plan).query
        assert query is not None
        yield from walk(query.physical_plan)


@cache
def steps() -> tuple[Step, ...]:
    """The steps of all cases that read records."""
    found = (case for file in sorted(FOLDER.glob("*.test")) for case in cases(file.read_text()) if case.ticks)
    return tuple(step for case in found for step in planned(case))


def expressions(step: Step) -> Iterator[Expression | NamedExpression]:
    for each in fields(step):
        if each.name.endswith(("expression", "expressions", "functions")) and each.name != "window_expression":
            value = value_of(getattr(step, each.name))
            read = parse_named if each.name == "select_expressions" else parse_expression
            yield from map(read, (value,) if isinstance(value, str) else value or ())


def calls(tree: Any) -> Iterator[str]:
    """The functions that an expression calls."""
    if isinstance(tree, Call):
        yield tree.name
    if is_dataclass(tree):
        for each in fields(tree):
            yield from calls(getattr(tree, each.name))
    elif isinstance(tree, tuple):
        for each in tree:
            yield from calls(each)


def check(wanted: Iterable[Any], found: Iterable[Any]) -> None:
    lacking = sorted(map(name, set(wanted) - set(found)))
    assert not lacking, f"no case in tests/queries for: {', '.join(lacking)}"


def name(wanted: Any) -> str:
    if isinstance(wanted, tuple):
        return " ".join(map(name, wanted))
    return wanted.TAG if isinstance(wanted, type) else str(wanted)


def test_every_step_has_a_case() -> None:
    wanted = set(STEP_TYPES) - {step.TAG for step in UNPLANNED_STEPS}
    check(wanted, (step.TAG for step in steps()))


def test_every_join_has_a_case() -> None:
    wanted = set(product(JoinStep.__args__, JoinType)) - set(UNKNOWN_JOINS)
    found = {(type(step), step.join_type) for step in steps() if isinstance(step, JoinStep)}
    check(wanted, found)


def test_every_window_has_a_case() -> None:
    found = set()
    for step in steps():
        if isinstance(step, StreamWindowedAggregate):
            window = step.window_expression
            assert not isinstance(window, str)
            strategy = value_of(window.emit_strategy) or OutputRefinement.CHANGES
            found.add((WindowType(window.TAG), strategy))
    check(product(WindowType, OutputRefinement), found)


def test_every_windowed_source_has_a_case() -> None:
    wanted = product((WindowedStreamSource, WindowStoreSource), WindowType)
    check(wanted, ((type(step), step.window_info.type) for step in steps() if isinstance(step, WindowedSourceStep)))


@pytest.mark.parametrize(
    ("kind", "value_formats"), [(TopicSourceStep, FORMATS), (SinkStep, WRITTEN)], ids=["read", "written"]
)
def test_every_pair_of_formats_has_a_case(kind: Any, value_formats: tuple[str, ...]) -> None:
    found = [step.formats for step in steps() if isinstance(step, kind)]
    pairs = {(formats.key_format.format, formats.value_format.format) for formats in found}
    check(set(product(FORMATS, value_formats)) - {(NONE, NONE)}, pairs)
    features = {feature for formats in found for feature in value_of(formats.value_features) or ()}
    check({SerdeFeature.WRAP_SINGLES, SerdeFeature.UNWRAP_SINGLES}, features)
    delimited = (value_of(formats.value_format.properties) for formats in found)
    assert any(properties and value_of(properties.delimiter) for properties in delimited)


def test_every_function_has_a_case() -> None:
    called = {name for step in steps() for tree in expressions(step) for name in calls(tree)}
    check(functions(), called)
