"""What statements mean once they are bound."""

from datetime import timedelta

import pytest

from holdfast.catalog.objects import TopicSettings
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.plan.formats import SerdeFeature, TimestampColumn
from holdfast.runtime.plan.optional import ABSENT
from holdfast.runtime.plan.windows import Duration, WindowStoreSettings, WindowTopic
from holdfast.sql.bind.create_as import BoundCreateAs
from holdfast.sql.bind.create_source import BoundCreateSource
from holdfast.sql.bind.drop import BoundDrop
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.query_control import BoundTerminate
from holdfast.sql.bind.statement import bind
from holdfast.sql.literals.timestamp import millis
from holdfast.sql.read.select import SelectKind, bind_select
from holdfast.sql.syntax.parse import parse, parse_select
from holdfast.types import Scalar

from .build import EVERYTHING, catalog_of

CATALOG = catalog_of(EVERYTHING)


def bound(text: str, **properties: str) -> object:
    (parsed,) = parse(text)
    return bind(parsed.statement, CATALOG, {name.replace("__", "."): value for name, value in properties.items()})


def columns(text: str) -> list[tuple[str, str, str]]:
    select = bind_select(parse_select(text), CATALOG)
    return [(c.name, format_expression(c.expression), str(c.type)) for c in select.columns]


def test_star_gives_the_key_and_then_the_value():
    assert [name for name, _, _ in columns("SELECT * FROM users")] == ["ID", "NAME", "AGE", "PAID"]
    assert [name for name, _, _ in columns("SELECT c.* FROM counts c")] == ["PAGE", "N"]


def test_a_select_is_a_pull_without_emit_and_a_push_with_emit_changes():
    pull = bind_select(parse_select("SELECT name FROM users WHERE age > 18 LIMIT 3"), CATALOG)
    assert (pull.kind, pull.relation.name, pull.limit) == (SelectKind.PULL, "USERS", 3)
    assert pull.where is not None
    assert format_expression(pull.where) == "(AGE > 18)"
    push = bind_select(parse_select("SELECT * FROM views EMIT CHANGES"), CATALOG)
    assert push.kind is SelectKind.PUSH


def test_expressions_without_a_name_are_given_one():
    text = "SELECT id, took + 1, place->city, place->city, LEN(page), views.page FROM views EMIT CHANGES"
    assert columns(text) == [
        ("ID", "ID", "INTEGER"),
        ("KSQL_COL_0", "(TOOK + 1)", "DOUBLE"),
        ("CITY", "PLACE->CITY", "STRING"),
        ("CITY_1", "PLACE->CITY", "STRING"),
        ("KSQL_COL_1", "LEN(PAGE)", "INTEGER"),
        ("PAGE", "PAGE", "STRING"),
    ]


def test_a_struct_is_spread_into_its_fields():
    assert columns("SELECT place->* FROM views EMIT CHANGES") == [
        ("CITY", "PLACE->CITY", "STRING"),
        ("ZIP", "PLACE->ZIP", "INTEGER"),
    ]


def test_pseudo_columns_can_be_read():
    text = "SELECT rowtime, rowpartition AS p, rowoffset AS o FROM views EMIT CHANGES"
    assert [(name, type_) for name, _, type_ in columns(text)] == [
        ("ROWTIME", "BIGINT"),
        ("P", "INTEGER"),
        ("O", "BIGINT"),
    ]


def test_a_text_that_meets_rowtime_is_a_time():
    select = bind_select(
        parse_select(
            "SELECT id FROM views v WHERE '2024' <= v.rowtime AND rowtime < '2024-02-01T01+0100' EMIT CHANGES"
        ),
        CATALOG,
    )
    assert select.where is not None
    assert format_expression(select.where) == "((1704067200000 <= ROWTIME) AND (ROWTIME < 1706745600000))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1970", 0), ("1970-01-01T00:00:00.001", 1), ("1970-01-01T00:00:00.1", 100), ("1969-12-31T23:59:59Z", -1000),
     ("1970-01-01T00:00-0130", 5_400_000), ("1970-13", None), ("soon", None), ("", None)],
)  # fmt: skip
def test_times_as_text(text, expected):
    assert millis(text) == expected


def test_create_takes_formats_topic_settings_and_timestamp_from_its_properties():
    create = bound(
        "CREATE STREAM s (a INT KEY, b STRING) WITH (KAFKA_TOPIC='t', FORMAT='json', PARTITIONS='4', REPLICAS=1, "
        "RETENTION_MS=-1, CLEANUP_POLICY='Delete, compact', "
        "TIMESTAMP='b', TIMESTAMP_FORMAT='yyyy', WRAP_SINGLE_VALUE=FALSE)"
    )
    assert isinstance(create, BoundCreateSource)
    target = create.target
    assert target.topic_settings == TopicSettings(4, 1, -1, "compact,delete")
    assert target.timestamp == TimestampColumn(column="B", format="yyyy")
    assert (target.formats.key_format.format, target.formats.value_format.format) == ("JSON", "JSON")
    assert target.formats.key_features == (SerdeFeature.UNWRAP_SINGLES,)
    assert target.formats.value_features == (SerdeFeature.UNWRAP_SINGLES,)


@pytest.mark.parametrize(
    ("properties", "topic", "retention"),
    [
        ("WINDOW_TYPE='tumbling', WINDOW_SIZE='2 HOURS'", WindowTopic.TOPIC, timedelta(days=1, hours=2)),
        ("WINDOW_TYPE='SESSION'", WindowTopic.TOPIC, timedelta(days=1)),
        ("WINDOW_TYPE='SESSION', RETENTION='1 second'", WindowTopic.TOPIC, timedelta(seconds=1)),
        (
            "WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 MINUTE', WINDOW_TOPIC='changelog', RETENTION='1 MINUTE'",
            WindowTopic.CHANGELOG,
            timedelta(minutes=1),
        ),
    ],
)
def test_a_windowed_table_retains_its_windows_for_their_size_and_a_day_or_as_it_says(
    properties: str, topic: WindowTopic, retention: timedelta
):
    create = bound(
        f"CREATE SOURCE TABLE t (a INT PRIMARY KEY, b INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON', {properties})"
    )
    assert isinstance(create, BoundCreateSource)
    assert create.target.window_store == WindowStoreSettings(topic=topic, retention=Duration.of(retention))


def test_formats_can_come_from_the_session():
    create = bound(
        "CREATE STREAM s (a INT KEY, b STRING) WITH (KAFKA_TOPIC='t')",
        ksql__persistence__default__format__key="JSON",
        ksql__persistence__default__format__value="JSON",
    )
    assert isinstance(create, BoundCreateSource)
    assert create.target.formats.key_format.format == "JSON"


def test_a_query_inherits_formats_and_keeps_its_key():
    create = bound("CREATE STREAM s AS SELECT took, v.id AS view FROM views v")
    assert isinstance(create, BoundCreateAs)
    assert str(create.target.schema) == "`VIEW` INTEGER KEY, `TOOK` DOUBLE"
    assert create.query.keys == ("VIEW",)
    assert create.target.topic == "S"
    assert create.target.formats.key_features is ABSENT


def test_the_key_of_an_aggregation_is_what_it_groups_by():
    create = bound(
        "CREATE TABLE t WITH (KEY_FORMAT='JSON', KAFKA_TOPIC='x') AS "
        "SELECT SUM(took) AS s, user, UCASE(page) AS p, COUNT() AS n FROM views GROUP BY UCASE(views.page), user"
    )
    assert isinstance(create, BoundCreateAs)
    assert str(create.target.schema) == "`P` STRING KEY, `USER` STRING KEY, `S` DOUBLE, `N` BIGINT"
    assert [format_expression(c.expression) for c in create.query.values] == ["SUM(TOOK)", "COUNT(ROWTIME)"]


def test_objects_that_are_there_or_not_there_already_need_nothing():
    assert bound("CREATE TABLE IF NOT EXISTS users AS SELECT * FROM nowhere") == BoundNothing(
        'table "USERS" already exists'
    )
    assert bound("DROP TABLE IF EXISTS nowhere") == BoundNothing('table "NOWHERE" does not exist')


def test_drop_and_terminate_name_what_they_end():
    drop = bound("DROP TABLE counts DELETE TOPIC")
    assert isinstance(drop, BoundDrop)
    assert (drop.target.name, drop.delete_topic) == ("COUNTS", True)
    every = bound("TERMINATE ALL")
    assert isinstance(every, BoundTerminate)
    assert [query.id for query in every.queries] == ["CTAS_COUNTS_2", "CSAS_FAST_3"]


def test_an_insert_may_set_rowtime_and_widen_numbers():
    insert = bound("INSERT INTO views (rowtime, id, took, ts) VALUES (5, -1, 2, 3)")
    assert [(c.name, c.type) for c in insert.columns] == [
        ("ROWTIME", Scalar.BIGINT),
        ("ID", Scalar.INTEGER),
        ("TOOK", Scalar.DOUBLE),
        ("TS", Scalar.BIGINT),
    ]


def test_delimiters_are_taken_and_handed_on():
    text = (
        "CREATE STREAM piped (k INT KEY, l INT KEY, v INT) WITH (KAFKA_TOPIC='piped', KEY_FORMAT='DELIMITED', "
        "KEY_DELIMITER='TAB', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|');"
    )
    source = bound(text)
    assert isinstance(source, BoundCreateSource)
    assert source.target.formats.key_format.properties.delimiter == "TAB"
    assert source.target.formats.value_format.properties.delimiter == "|"
    found = []
    for own in ("", "WITH (KEY_DELIMITER='SPACE', VALUE_DELIMITER=';')"):
        (parsed,) = parse(f"CREATE STREAM p {own} AS SELECT * FROM piped;")
        made = bind(parsed.statement, catalog_of(text))
        assert isinstance(made, BoundCreateAs)
        both = (made.target.formats.key_format, made.target.formats.value_format)
        found.append(tuple(each.properties.delimiter for each in both))
    assert found == [(ABSENT, "|"), ("SPACE", ";")]
