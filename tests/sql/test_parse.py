"""What statements look like after parsing."""

from dataclasses import replace
from itertools import islice

import pytest

from holdfast.errors import Position, SyntaxProblem, UnknownObject
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import HoppingWindow, SessionWindow, TimeUnit, TumblingWindow, WindowTime
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.parse import parse, parse_select, statements
from holdfast.sql.syntax.statements import (
    ColumnDefinition,
    Emit,
    ExplainFormat,
    Identifier,
    Listing,
    Marker,
    ObjectKind,
    Property,
)
from holdfast.types import Array, Map, Scalar, SqlType, Struct, StructField


def one(text: str) -> sql.Statement:
    (parsed,) = parse(text)
    return parsed.statement


def test_create_stream_over_a_topic():
    statement = one(
        """CREATE OR REPLACE STREAM IF NOT EXISTS views (id INT KEY, tags ARRAY<VARCHAR>, `Mixed` BIGINT)
           WITH (kafka_topic = 'views', "partitions" = 3, wrap_single_value = false)"""
    )
    assert statement == sql.CreateSource(
        kind=ObjectKind.STREAM,
        name=Identifier("VIEWS"),
        columns=(
            ColumnDefinition("ID", Scalar.INTEGER, Marker.KEY),
            ColumnDefinition("TAGS", Array(Scalar.STRING)),
            ColumnDefinition("Mixed", Scalar.BIGINT),
        ),
        properties=(
            Property("KAFKA_TOPIC", "views"),
            Property("PARTITIONS", 3),
            Property("WRAP_SINGLE_VALUE", False),
        ),
        or_replace=True,
        if_not_exists=True,
    )


def test_create_source_table_with_headers():
    statement = one("create source table t (k string primary key, h bytes header('x'), m map<string, int> headers)")
    assert statement == sql.CreateSource(
        kind=ObjectKind.TABLE,
        name=Identifier("T"),
        columns=(
            ColumnDefinition("K", Scalar.STRING, Marker.PRIMARY_KEY),
            ColumnDefinition("H", Scalar.BYTES, Marker.HEADERS, "x"),
            ColumnDefinition("M", Map(Scalar.STRING, Scalar.INTEGER), Marker.HEADERS),
        ),
        properties=(),
        read_only=True,
    )


def test_create_table_as_select():
    statement = one(
        "CREATE TABLE counts WITH (partitions=1) AS SELECT v.page, COUNT(*) AS n FROM views v "
        "WHERE v.user <> 'bot' GROUP BY v.page HAVING COUNT(*) > 10 EMIT CHANGES"
    )
    assert statement == sql.CreateAs(
        kind=ObjectKind.TABLE,
        name=Identifier("COUNTS"),
        properties=(Property("PARTITIONS", 1),),
        select=sql.Select(
            items=(
                sql.SelectExpression(parse_expression("V.PAGE")),
                sql.SelectExpression(parse_expression("COUNT(*)"), "N"),
            ),
            relation=sql.RelationReference("VIEWS", "V"),
            where=parse_expression("V.USER <> 'bot'"),
            group_by=(parse_expression("V.PAGE"),),
            having=parse_expression("COUNT(*) > 10"),
            emit=Emit.CHANGES,
        ),
    )


def test_select_items():
    select = parse_select("SELECT *, t.*, s->*, a b, c AS key, d KEY FROM t LIMIT 5")
    assert select.limit == 5
    assert select.items == (
        sql.SelectStar(),
        sql.SelectStar("T"),
        sql.SelectFields(parse_expression("S")),
        sql.SelectExpression(parse_expression("A"), "B"),
        sql.SelectExpression(parse_expression("C"), "KEY"),
        sql.SelectExpression(parse_expression("D"), "KEY"),
    )


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("INSERT INTO t VALUES (1)", sql.InsertValues(
            target=Identifier("T"), columns=(), values=(parse_expression("1"),))),
        ("INSERT INTO t (a, `b`) VALUES (1, 'x')", sql.InsertValues(
            target=Identifier("T"), columns=(Identifier("A"), Identifier("b")),
            values=(parse_expression("1"), parse_expression("'x'")))),
        ("DROP STREAM s", sql.Drop(kind=ObjectKind.STREAM, name=Identifier("S"))),
        ("DROP TABLE IF EXISTS t DELETE TOPIC", sql.Drop(
            kind=ObjectKind.TABLE, name=Identifier("T"), if_exists=True, delete_topic=True)),
        ("SHOW STREAMS", sql.Show(Listing.STREAMS)),
        ("LIST ALL TOPICS", sql.Show(Listing.TOPICS, everything=True)),
        ("DESCRIBE STREAMS", sql.Show(Listing.STREAMS, True)),
        ("describe tables extended", sql.Show(Listing.TABLES, True)),
        ("DESCRIBE streams2", sql.Describe(Identifier("STREAMS2"))),
        ("list queries extended", sql.Show(Listing.QUERIES, True)),
        ("DESCRIBE t EXTENDED", sql.Describe(Identifier("T"), True)),
        ("DESCRIBE FUNCTION len", sql.DescribeFunction(Identifier("LEN"))),
        ("EXPLAIN ctas_t_1", sql.ExplainQuery(Identifier("CTAS_T_1"))),
        ("EXPLAIN FORMAT JSON ctas_t_1", sql.ExplainQuery(Identifier("CTAS_T_1"), ExplainFormat.JSON)),
        ("explain as dot for ctas_t_1", sql.ExplainQuery(Identifier("CTAS_T_1"), ExplainFormat.DOT)),
        ("EXPLAIN ctas_t_1 AS svg", sql.ExplainQuery(Identifier("CTAS_T_1"), ExplainFormat.SVG)),
        ("EXPLAIN ctas_t_1 FORMAT TEXT", sql.ExplainQuery(Identifier("CTAS_T_1"), ExplainFormat.TEXT)),
        ("SET 'a.b' = 'it''s'", sql.SetProperty("a.b", "it's")),
        ("UNSET 'a.b'", sql.UnsetProperty("a.b")),
        ("TERMINATE q_1", sql.Terminate(Identifier("Q_1"))),
        ("TERMINATE ALL", sql.Terminate(None)),
        ("PAUSE q_1", sql.Pause(Identifier("Q_1"))),
        ("PAUSE ALL", sql.Pause(None)),
        ("RESUME q_1", sql.Resume(Identifier("Q_1"))),
        ("RESUME ALL", sql.Resume(None)),
        ("PRINT Some_Topic", sql.Print(topic="Some_Topic")),
        ("PRINT 'a.b' FROM BEGINNING INTERVAL 3 LIMIT 5",
         sql.Print(topic="a.b", from_beginning=True, interval=3, limit=5)),
        ("PRINT `T` SAMPLE 2", sql.Print(topic="T", interval=2)),
        ("ASSERT TOPIC foo", sql.AssertTopic(topic="foo")),
        ("ASSERT NOT EXISTS TOPIC 'f' TIMEOUT 5 SECONDS",
         sql.AssertTopic(topic="f", exists=False, timeout=WindowTime(value=5, time_unit=TimeUnit.SECONDS))),
        ("ASSERT TOPIC t WITH (PARTITIONS = 2)",
         sql.AssertTopic(topic="t", properties=(sql.Property("PARTITIONS", 2),))),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT s ID 3 TIMEOUT 1 MINUTE", sql.AssertSchema()),
        ("DROP CONNECTOR c", sql.Refused("DROP CONNECTOR")),
        ("CREATE TYPE IF NOT EXISTS point AS STRUCT<a INT>", sql.CreateType(
            name=Identifier("POINT"), type=Struct((StructField("A", Scalar.INTEGER),)), if_not_exists=True)),
        ("DROP TYPE point", sql.DropType(name=Identifier("POINT"))),
        ("ALTER TABLE t ADD COLUMN a INT, ADD b STRING", sql.Alter(
            kind=ObjectKind.TABLE, name=Identifier("T"),
            columns=(ColumnDefinition("A", Scalar.INTEGER), ColumnDefinition("B", Scalar.STRING)))),
        ("CREATE SINK CONNECTOR c WITH (x = 1)", sql.Refused("CREATE SINK CONNECTOR")),
        ("INSERT INTO a WITH (QUERY_ID = 'q') SELECT * FROM b", sql.InsertSelect(
            target=Identifier("A"), properties=(sql.Property("QUERY_ID", "q"),),
            select=parse_select("SELECT * FROM b"))),
    ],
)  # fmt: skip
def test_small_statements(text, statement):
    assert one(text) == statement


EXPLAINED = [
    "SELECT a FROM t",
    "SELECT a FROM t AS svg2 WHERE svg2.a = ' AS SVG'",
    "SELECT a, 1 AS svg FROM t GROUP BY a",
    "CREATE TABLE u AS SELECT a, COUNT(*) FROM t GROUP BY a",
    "CREATE STREAM s (a INT KEY) WITH (KAFKA_TOPIC = 's')",
]


@pytest.mark.parametrize("text", EXPLAINED)
@pytest.mark.parametrize(
    "written",
    ["EXPLAIN AS SVG {}", "EXPLAIN FORMAT SVG FOR {}", "EXPLAIN {} AS SVG", "EXPLAIN {}\n-- ;\nFORMAT /* as */ svg"],
)
def test_the_format_of_an_explain_is_before_the_statement_or_at_its_end(text, written):
    whole = written.format(text)
    parsed, after = parse(f"{whole} /* AS DOT */ ; SHOW TABLES;")
    assert parsed.text == whole
    assert parsed.statement == sql.ExplainStatement(one(text), ExplainFormat.SVG, text)
    assert after.statement == sql.Show(Listing.TABLES)


def test_an_explain_without_a_format_has_none():
    for text in EXPLAINED:
        assert one(f"EXPLAIN {text}") == sql.ExplainStatement(one(text), None, text)


def test_a_relation_called_like_a_format_is_quoted():
    assert one("EXPLAIN SELECT a FROM t AS `SVG`").statement.relation.alias == "SVG"
    assert one("SELECT a FROM t AS SVG").relation.alias == "SVG"


@pytest.mark.parametrize(
    ("clause", "name"),
    [
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT a FROM t ORDER BY b DESC", "ORDER BY"),
    ],
)
def test_clauses_of_later_releases_are_kept_by_name(clause, name):
    assert [kept.name for kept in parse_select(clause).clauses] == [name]


def span(value: int, unit: str) -> WindowTime:
    return WindowTime(value=value, time_unit=TimeUnit(unit))


WITHIN = sql.Within(span(5, "SECONDS"), span(5, "SECONDS"))


@pytest.mark.parametrize(
    ("text", "kind", "within"),
    [
        ("JOIN u WITHIN 5 SECONDS", JoinType.INNER, WITHIN),
        ("INNER JOIN u", JoinType.INNER, None),
        ("LEFT JOIN u WITHIN 5 SECONDS GRACE PERIOD 1 DAY", JoinType.LEFT, replace(WITHIN, grace=span(1, "DAYS"))),
        ("RIGHT OUTER JOIN u WITHIN (5 SECONDS, 1 HOUR)", JoinType.RIGHT, replace(WITHIN, after=span(1, "HOURS"))),
        ("full outer join u", JoinType.OUTER, None),
    ],
)
def test_joins(text, kind, within):
    select = parse_select(f"SELECT a FROM t {text} ON t.a = u.a JOIN w ON w.a = t.a WHERE b")
    join, other = select.joins
    assert (join.kind, join.relation.name, join.within) == (kind, "U", within)
    assert join.condition == parse_expression("t.a = u.a")
    assert (other.kind, other.relation.name, other.within) == (JoinType.INNER, "W", None)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("TUMBLING (SIZE 1 DAY)", TumblingWindow(
            size=span(1, "DAYS"), retention=None, grace_period=None, emit_strategy=None)),
        ("named HOPPING (SIZE 5 MINUTES, ADVANCE BY 1 MINUTE, GRACE PERIOD 0 SECONDS)", HoppingWindow(
            size=span(5, "MINUTES"), advance_by=span(1, "MINUTES"), retention=None, grace_period=span(0, "SECONDS"),
            emit_strategy=None)),
        ("session (2 milliseconds, grace period 1 second, retention 1 hour)", SessionWindow(
            gap=span(2, "MILLISECONDS"), retention=span(1, "HOURS"), grace_period=span(1, "SECONDS"),
            emit_strategy=None)),
    ],
)  # fmt: skip
def test_windows(text, window):
    select = parse_select(f"SELECT a FROM t WINDOW {text} WHERE a GROUP BY a")
    assert select.window == sql.Window(window)


@pytest.mark.parametrize("text", ["a, b + 1", "(a, b + 1)"])
def test_partition_by_takes_a_list_with_or_without_brackets(text):
    wanted = (parse_expression("a"), parse_expression("b + 1"))
    assert parse_select(f"SELECT a FROM t PARTITION BY {text} EMIT CHANGES").partition_by == wanted


def test_named_types_are_those_known_when_a_statement_is_read():
    known: dict[str, SqlType] = {}
    read = statements("CREATE STREAM s (a point); CREATE STREAM s (a point)", lambda: known)
    with pytest.raises(UnknownObject):
        next(read)
    known["POINT"] = Scalar.DOUBLE
    (parsed,) = statements("CREATE STREAM s (a point)", lambda: known)
    assert parsed.statement.columns[0].type is Scalar.DOUBLE


def test_each_statement_carries_its_own_text_and_place():
    first, second = parse("SHOW TABLES;;\n  SELECT ';' AS x -- a; b\n FROM t /* ; */ ;")
    assert (first.text, first.position) == ("SHOW TABLES", Position(1, 1, 0))
    assert (second.text, second.position) == ("SELECT ';' AS x -- a; b\n FROM t", Position(2, 3, 16))


def test_positions_are_those_of_the_whole_text():
    _, second = parse("SHOW TABLES;\nSELECT a FROM t WHERE b = 1")
    assert isinstance(second.statement, sql.Select)
    assert second.statement.where is not None
    assert second.statement.where.position == Position(2, 23, 35)


def test_statements_before_a_mistake_are_read():
    read = statements("SHOW TABLES; " * 6 + "SELEKT 1; SHOW TABLES")
    assert [parsed.text for parsed in islice(read, 6)] == ["SHOW TABLES"] * 6
    with pytest.raises(SyntaxProblem) as problem:
        next(read)
    assert problem.value.position == Position(1, 79, 78)


def test_what_is_refused_ends_at_its_semicolon():
    texts = ["ALTER SYSTEM q", "SHOW TABLES", "ALTER SYSTEM", "SHOW STREAMS", "LIST CONNECTORS", "LIST QUERIES"]
    texts.append("DESCRIBE CONNECTOR x")
    parsed = parse("; ".join(texts))
    assert [item.text for item in parsed] == texts
    assert [type(item.statement).__name__ for item in parsed] == ["Refused", "Show"] * 3 + ["Refused"]


def test_a_text_of_blanks_and_comments_has_no_statements():
    assert parse(" ; -- nothing\n /* at all */ ;") == []


@pytest.mark.parametrize(
    ("text", "message", "hint", "place"),
    [
        ("SELEC * FROM t", 'syntax error at or near "SELEC"', "Did you mean SELECT?", (1, 1)),
        ("SELECT * FORM t", 'syntax error at or near "FORM"', "Did you mean FROM?", (1, 10)),
        ("SELECT FROM t", 'syntax error at or near "FROM"', 'Expected DISTINCT, "*" or an expression.', (1, 8)),
        ("CREATE VIEWS v", 'syntax error at or near "VIEWS"', "Did you mean VIEW?", (1, 8)),
        ("DROP STREAM", "syntax error at the end of the text", "Expected IF or a name.", (1, 12)),
        ("DROP STREAM s s", 'syntax error at or near "s"', 'Expected CASCADE, DELETE or ";".', (1, 15)),
        ("CREATE STREAM s (a INT PRIMARY)", 'syntax error at or near ")"', "Expected KEY.", (1, 31)),
        ("CREATE STREAM s (at BIGINT)", 'syntax error at or near "at"',
         "AT is a reserved word; as a name, write it in back-quotes: `AT`.", (1, 18)),
        ("SELECT ts AT TIME ZONE 'UTC' FROM t", 'syntax error at or near "AT"',
         "Functions take a time zone: CONVERT_TZ(ts, 'UTC', 'Europe/Paris'), for instance, or FORMAT_TIMESTAMP.",
         (1, 11)),
        ("ALTER STREAM s DROP COLUMN a", 'syntax error at or near "DROP"',
         "Columns can only be added: ALTER STREAM s ADD COLUMN name type.", (1, 16)),
        ("SHOW TABLES; PRINT my-topic.v1 FROM BEGINNING", 'syntax error at or near "-"',
         "Write the name of the topic in quotes: PRINT 'my-topic.v1'.", (1, 22)),
        ("EXPLAIN AS PNG ctas_t_1", 'EXPLAIN has no format "PNG"', "Known formats are: TEXT, JSON, DOT, SVG.", (1, 12)),
        ("EXPLAIN FORMAT jsn SELECT 1 FROM t", 'EXPLAIN has no format "JSN"', 'Did you mean "JSON"?', (1, 16)),
        ("EXPLAIN AS DOT q AS SVG", "EXPLAIN has two formats", "Leave one out.", (1, 18)),
        ("EXPLAIN SELECT a, FROM t AS SVG", 'syntax error at or near "FROM"', 'Expected "*" or an expression.',
         (1, 19)),
        ("EXPLAIN CREATE TABLE AS SVG", 'syntax error at or near "AS"', "Expected IF or a name.", (1, 22)),
        ("EXPLAIN", "syntax error at the end of the text",
         "Expected AS, CREATE, FORMAT, INSERT, SELECT, TIMESTAMP, WITH or a name.", (1, 8)),
        ("EXPLAIN AS SVG", "syntax error at the end of the text",
         "Expected CREATE, FOR, INSERT, SELECT, WITH or a name.", (1, 15)),
        ("SELECT 'abc", "unterminated string", "End it with a single quote.", (1, 8)),
        ("SELECT a FROM t LIMIT 1 WHERE a = 1", "WHERE must come before LIMIT", None, (1, 25)),
        ("SELECT a FROM t WHERE a WHERE b", "WHERE is specified twice", None, (1, 25)),
        (f"SELECT a FROM t LIMIT {'9' * 5000}", "a whole number has at most 4300 digits",
         "A DECIMAL holds 38 digits, a DOUBLE numbers up to 1.7976931348623157E308.", (1, 23)),
        ("SELECT a FROM t LIMIT 99999999999", "a LIMIT must be at most 2147483647", None, (1, 23)),
        ("CREATE STREAM s (a INTT) WITH (x=1)", 'type "INTT" does not exist', 'Did you mean "INT"?', (1, 20)),
        ("CREATE SOURCE STREAM s AS SELECT * FROM t", "a SOURCE STREAM cannot be created from a query",
         "Leave out SOURCE.", (1, 1)),
    ],
)  # fmt: skip
def test_mistakes(text, message, hint, place):
    with pytest.raises(Exception) as raised:  # noqa: PT011
        parse(text)
    error = raised.value
    assert (error.message, error.hint, (error.position.line, error.position.column)) == (message, hint, place)
