"""The catalog is a fold over commands, and a command that cannot be read harms no other."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.catalog.commands import Command, CommandId, decode_command, encode_command, topic_properties
from holdfast.catalog.fold import apply, fold
from holdfast.catalog.objects import QueryState, Stream, Table, TopicSettings
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import BindError
from holdfast.names import StoreId
from holdfast.runtime.plan.windows import (
    Duration,
    OutputRefinement,
    WindowInfo,
    WindowStoreSettings,
    WindowTopic,
    WindowType,
)
from holdfast.types import Column, Role, Scalar, Schema

FORMATS: dict[str, Any] = {"keyFormat": {"format": "KAFKA"}, "valueFormat": {"format": "JSON"}}


def create(name: str, *, kind: str = "Stream", query: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "@type": "ksqlPlanV1",
        "statementText": f"create {name}",
        "ddlCommand": {
            "@type": f"create{kind}V1",
            "sourceName": name,
            "schema": "`K` INTEGER KEY, `V` STRING",
            "topicName": name.lower(),
            "formats": FORMATS,
            **more,
        },
        "queryPlan": query,
    }


def query(source: str, sink: str, number: int, *, tag: str = "streamSourceV1") -> dict[str, Any]:
    step: dict[str, Any] = {
        "@type": tag,
        "properties": {"queryContext": "KsqlTopic/Source"},
        "topicName": source.lower(),
        "formats": FORMATS,
        "sourceSchema": "`K` INTEGER KEY, `V` STRING",
    }
    sink_step = {
        "@type": "streamSinkV1",
        "properties": {"queryContext": sink},
        "source": step,
        "formats": FORMATS,
        "topicName": sink.lower(),
    }
    return {"sources": [source], "sink": sink, "physicalPlan": sink_step, "queryId": f"CSAS_{sink}_{number}"}


def drop(name: str) -> dict[str, Any]:
    ddl = {"@type": "dropSourceV1", "sourceName": name}
    return {"@type": "ksqlPlanV1", "statementText": f"drop {name}", "ddlCommand": ddl, "queryPlan": None}


def command(plan: dict[str, Any] | None, key: str = "stream/X/create", **rest: Any) -> Command:
    encoded = json.dumps(plan, separators=(",", ":")).encode() if plan is not None else None
    return Command(id=CommandId.parse(key), statement="…", plan=encoded, **rest)


def terminate(id_: str) -> Command:
    return command(None, f"terminate/{id_}/execute")


NAMES = st.sampled_from("ABCD")
PAUSES = st.sampled_from(["pause", "resume"])
COMMANDS = st.one_of(
    st.builds(lambda n, k: command(create(n, kind=k)), NAMES, st.sampled_from(["Stream", "Table"])),
    st.builds(lambda s, n, i: command(create(n, query=query(s, n, i))), NAMES, NAMES, st.integers(0, 3)),
    st.builds(lambda n: command(drop(n)), NAMES),
    st.builds(lambda n, i: terminate(f"CSAS_{n}_{i}"), NAMES, st.integers(0, 3)),
    st.just(terminate("ALL")),
    st.builds(lambda n, i, t: command(None, f"{t}/CSAS_{n}_{i}/execute"), NAMES, st.integers(0, 3), PAUSES),
)
UNREADABLE = st.integers(0, 3).flatmap(
    lambda i: st.sampled_from(
        [
            command(create(f"U{i}", query=query("A", f"U{i}", i, tag="streamFoldV9"))),
            command({"@type": "ksqlPlanV2", "statementText": "later"}, offset=i),
            command(create(f"U{i}", kind="View"), offset=i),
            command(None, offset=i),
            Command(id=CommandId("", "", ""), statement="", problem="the record is not a command", offset=i),
        ]
    )
)


@given(st.lists(COMMANDS), st.lists(COMMANDS))
def test_folding_in_parts_is_folding_at_once(before, after):
    assert fold(after, fold(before)) == fold(before + after)


@given(st.lists(COMMANDS))
def test_commands_survive_the_topic(commands):
    records = [encode_command(item) for item in commands]
    assert fold(decode_command(*record) for record in records) == fold(commands)


@given(st.lists(COMMANDS), COMMANDS)
def test_applying_a_command_leaves_the_old_catalog_as_it_was(commands, last):
    catalog = fold(commands)
    copy = Catalog(dict(catalog.objects), dict(catalog.queries))
    apply(catalog, last)
    assert catalog == copy


@given(st.lists(st.one_of(COMMANDS.map(lambda c: (c, True)), UNREADABLE.map(lambda c: (c, False)))))
def test_what_cannot_be_read_harms_no_other(marked):
    commands = [item for item, _ in marked if item.id.type != "terminate"]
    readable = [item for item, good in marked if good and item.id.type != "terminate"]
    catalog, clean = fold(commands), fold(readable)
    running = {id_: q for id_, q in catalog.queries.items() if q.state is not QueryState.INCOMPATIBLE}
    assert running == clean.queries
    assert {name: o for name, o in catalog.objects.items() if not name.startswith("U")} == clean.objects
    incompatible = [q for q in catalog.queries.values() if q.state is QueryState.INCOMPATIBLE]
    assert all(q.reason for q in incompatible)
    assert bool(incompatible) == (len(commands) > len(readable))


@given(st.binary(), st.binary())
def test_any_record_can_be_applied(key, value):
    entry = apply(EMPTY, decode_command(key, value, offset=7)).queries["COMMAND_7"]
    assert entry.state is QueryState.INCOMPATIBLE


def test_a_stream_is_what_its_plan_says():
    made = command(create("A"), properties=topic_properties(TopicSettings(partitions=4)))
    stream = fold([made]).stream("A")
    assert stream.schema == Schema((Column("K", Scalar.INTEGER, Role.KEY), Column("V", Scalar.STRING)))
    assert (stream.topic, stream.derived, stream.topic_settings.partitions) == ("a", False, 4)


def test_a_query_writes_the_object_that_came_with_it():
    catalog = fold([command(create("A")), command(create("B", query=query("A", "B", 1)))])
    assert [q.id for q in catalog.readers("A")] == ["CSAS_B_1"]
    assert [q.id for q in catalog.writers("B")] == ["CSAS_B_1"]
    assert catalog.stream("B").derived


def test_a_source_table_of_ksqldb_is_kept_from_its_topic_and_not_by_its_query():
    materialising = query("T", "T", 1)
    materialising |= {"sink": None, "physicalPlan": materialising["physicalPlan"]["source"]}
    catalog = fold([command(create("T", kind="Table", query=materialising))])
    assert not catalog.queries
    assert not catalog.tables[0].derived


def test_a_windowed_table_of_older_plans_retains_all_windows_and_a_new_one_what_its_plan_says():
    session = {"type": "SESSION", "size": None, "emitStrategy": "CHANGES"}
    older = create("T", kind="Table", windowInfo=session)
    (table,) = fold([command(older)]).tables
    assert table.window == WindowInfo(type=WindowType.SESSION, size=None, emit_strategy=OutputRefinement.CHANGES)
    assert table.window_store is None
    newer = create("T", kind="WindowedTable", windowInfo=session, windowTopic="CHANGELOG", retention=90)
    (table,) = fold([command(newer)]).tables
    assert table.window_store == WindowStoreSettings(topic=WindowTopic.CHANGELOG, retention=Duration(Decimal(90)))
    assert not table.derived


def test_dropping_an_object_ends_its_query_and_terminating_a_query_keeps_its_object():
    made = [command(create("A")), command(create("B", query=query("A", "B", 1)))]
    dropped = fold([*made, command(drop("B"))])
    assert (set(dropped.objects), dict(dropped.queries)) == ({"A"}, {})
    ended = fold([*made, terminate("CSAS_B_1")])
    assert (set(ended.objects), dict(ended.queries)) == ({"A", "B"}, {})


def test_a_query_is_paused_until_it_is_resumed():
    made = [command(create("A")), command(create("B", query=query("A", "B", 1)))]
    paused = fold([*made, command(None, "pause/CSAS_B_1/execute")])
    assert paused.queries["CSAS_B_1"].state is QueryState.PAUSED
    assert fold([command(None, "resume/CSAS_B_1/execute")], paused) == fold(made)
    # One that is gone, or that this release cannot run, is left as it is.
    quarantined = fold([command(create("U", query=query("A", "U", 1, tag="streamFoldV9")))])
    for type_ in ("pause", "resume"):
        assert fold([command(None, f"{type_}/NOBODY/execute")], paused) == paused
        assert fold([command(None, f"{type_}/CSAS_U_1/execute")], quarantined) == quarantined


def test_replacing_an_object_replaces_its_query():
    first = command(create("B", query=query("A", "B", 1)))
    second = command(create("B", kind="Table", query=query("A", "B", 2)))
    catalog = fold([first, second])
    assert isinstance(catalog.objects["B"], Table)
    assert list(catalog.queries) == ["CSAS_B_2"]


def test_a_query_in_quarantine_keeps_its_name_object_and_reason():
    catalog = fold([command(create("B", query=query("A", "B", 1, tag="streamFoldV9")))])
    entry = catalog.queries["CSAS_B_1"]
    assert (entry.state, entry.sources, entry.sink) == (QueryState.INCOMPATIBLE, ("A",), "B")
    assert entry.reason is not None
    assert "streamFoldV9" in entry.reason
    assert isinstance(catalog.objects["B"], Stream)


def test_a_command_without_a_plan_is_planned_when_it_is_replayed():
    bare = command(None, offset=3)
    planned = json.dumps(create("A")).encode()
    assert fold([bare], replan=lambda *_: planned).stream("A").name == "A"
    entry = fold([bare]).queries["COMMAND_3"]
    assert entry.reason == "the command has no plan"


def test_a_command_that_cannot_be_planned_again_is_kept_with_the_reason():
    def replan(*_: object) -> bytes:
        raise BindError("no such thing")

    assert fold([command(None, offset=3)], replan=replan).queries["COMMAND_3"].reason == "no such thing"


def test_altering_adds_columns():
    ddl = {"@type": "alterSourceV1", "sourceName": "A", "ksqlType": "STREAM", "newColumns": ["`W` BIGINT"]}
    altered = {"@type": "ksqlPlanV1", "statementText": "", "ddlCommand": ddl, "queryPlan": None}
    catalog = fold([command(create("A")), command(altered)])
    assert str(catalog.stream("A").schema) == "`K` INTEGER KEY, `V` STRING, `W` BIGINT"


def test_a_command_is_json_with_the_plan_inside():
    made = command(drop("A"), "stream/A/drop", properties={"a": "b"}, store_id=StoreId("s-1"))
    key, value = encode_command(made)
    assert key == b"stream/A/drop"
    assert json.loads(value) == {
        "statement": "…",
        "plan": drop("A"),
        "properties": {"a": "b"},
        "release": "0.1.0",
        "storeId": "s-1",
    }
    assert replace(decode_command(key, value), plan=None) == replace(made, plan=None)


def test_properties_of_later_releases_are_ignored():
    value = json.dumps({"statement": "x", "plan": create("A"), "colour": "red", "properties": {"n": 1}}).encode()
    decoded = decode_command(b"stream/A/create", value)
    assert (decoded.problem, decoded.properties, decoded.release) == (None, {"n": "1"}, "")


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("stream/A/create", CommandId("stream", "A", "create")),
        ('"terminate/CSAS_A_1/execute"', CommandId("terminate", "CSAS_A_1", "execute")),
        ("stream/a/b/drop", CommandId("stream", "a/b", "drop")),
        ("nonsense", CommandId("", "nonsense", "")),
    ],
)
def test_keys(text, id_):
    assert CommandId.parse(text) == id_
