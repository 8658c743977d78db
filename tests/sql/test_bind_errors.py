"""What users are told about statements that do not fit the catalog: exact words, place and hint."""

import pytest

from holdfast.errors import (
    BindError,
    DependentObjects,
    DuplicateObject,
    NotSupported,
    NotYetSupported,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
    UnknownObject,
    UnknownProperty,
    WrongObjectKind,
)
from holdfast.sql.bind import bind
from holdfast.sql.parse import parse

from .build import EVERYTHING, catalog_of

CATALOG = catalog_of(EVERYTHING)
WITH = "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON')"

UNKNOWN = [
    ("SELECT nme FROM users", UnknownColumn, 'column "NME" does not exist in "USERS"', 'Did you mean "NAME"?', 8),
    ("SELECT u.nme FROM users u", UnknownColumn, 'column "NME" does not exist in "USERS"', 'Did you mean "NAME"?', 8),
    ("SELECT * FROM users WHERE agee > 1", UnknownColumn, 'column "AGEE" does not exist in "USERS"',
     'Did you mean "AGE"?', 27),
    ("SELECT * FROM user", UnknownObject, 'stream or table "USER" does not exist', 'Did you mean "USERS"?', 15),
    ("SELECT x.name FROM users u", UnknownObject, 'relation "X" does not exist', "Known names are: U.", 8),
    ("SELECT x.* FROM users u", UnknownObject, 'relation "X" does not exist', "Known names are: U.", 8),
    ("SELECT ucas(name) FROM users", UnknownFunction, 'function "UCAS" does not exist', 'Did you mean "UCASE"?', 8),
    ("SELECT place->town FROM views EMIT CHANGES", UnknownColumn, 'column "TOWN" does not exist in "PLACE"',
     "Known columns are: CITY, ZIP.", 8),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, PARTITION=1)", UnknownProperty, 'property "PARTITION" does not exist',
     'Did you mean "PARTITIONS"?', 69),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSN')", BindError,
     'format "JSN" does not exist', 'Did you mean "JSON"?', 48),
    ("DROP TABLE usrs", UnknownObject, 'table "USRS" does not exist', 'Did you mean "USERS"?', 12),
    ("TERMINATE ctas_count_2", UnknownObject, 'query "CTAS_COUNT_2" does not exist',
     'Did you mean "CTAS_COUNTS_2"?', 11),
    ("INSERT INTO users (id, nam) VALUES ('1', 'x')", UnknownColumn, 'column "NAM" does not exist in "USERS"',
     'Did you mean "NAME"?', 24),
    ("DESCRIBE user", UnknownObject, 'stream or table "USER" does not exist', 'Did you mean "USERS"?', 10),
]  # fmt: skip

CREATE = [
    (f"CREATE TABLE t (a INT) {WITH}", BindError, "a table needs a PRIMARY KEY",
     "Write PRIMARY KEY after the type of its key column: A … PRIMARY KEY.", 14),
    (f"CREATE TABLE t (a INT KEY) {WITH}", BindError, 'column "A" of a table cannot be KEY', "Write PRIMARY KEY.", 17),
    (f"CREATE STREAM s (a INT PRIMARY KEY) {WITH}", BindError, 'column "A" of a stream cannot be PRIMARY KEY',
     "Write KEY.", 18),
    (f"CREATE STREAM s (a INT, a INT) {WITH}", BindError, 'column "A" is declared twice', None, 25),
    (f"CREATE STREAM s (rowtime BIGINT) {WITH}", BindError, 'a column cannot be named "ROWTIME"', None, 18),
    ("CREATE STREAM s (a INT) WITH (VALUE_FORMAT='JSON')", BindError, "KAFKA_TOPIC is missing",
     "Write WITH (KAFKA_TOPIC='…', VALUE_FORMAT='JSON').", 15),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t')", BindError, "VALUE_FORMAT is missing",
     "Write VALUE_FORMAT='JSON', or SET 'ksql.persistence.default.format.value'='JSON'.", 15),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='a b', VALUE_FORMAT='JSON')", BindError,
     "'a b' cannot be the name of a topic",
     'Use at most 249 of the characters a-z, A-Z, 0-9, ".", "_" and "-".', 31),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, PARTITIONS=0)", BindError,
     "property PARTITIONS must be a whole number of at least 1, not 0", None, 69),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON', VALUE_FORMAT='JSON')", BindError,
     "FORMAT and VALUE_FORMAT cannot both be given",
     "FORMAT sets both; write KEY_FORMAT and VALUE_FORMAT to set each.", 63),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO')", NotYetSupported,
     "the value format AVRO is not supported yet", "Supported value formats are: JSON, KAFKA.", 48),
    (f"CREATE STREAM s (a INT KEY, b INT KEY, c INT) {WITH}", BindError,
     "the key format KAFKA holds one column, not 2: A, B", "Write WITH (KEY_FORMAT='JSON').", 15),
    (f"CREATE STREAM s (a BOOLEAN KEY, c INT) {WITH}", BindError,
     'the key format KAFKA cannot hold column "A" of type BOOLEAN', "Write WITH (KEY_FORMAT='JSON').", 15),
    ("CREATE STREAM s (a INT, b INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='KAFKA')", BindError,
     "the value format KAFKA holds one column, not 2: A, B", "Write WITH (VALUE_FORMAT='JSON').", 55),
    ("CREATE STREAM s (a BOOLEAN) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='KAFKA')", BindError,
     'the value format KAFKA cannot hold column "A" of type BOOLEAN', "Write WITH (VALUE_FORMAT='JSON').", 52),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='KAFKA', WRAP_SINGLE_VALUE=true)", BindError,
     "the value format KAFKA does not take WRAP_SINGLE_VALUE = TRUE", None, 70),
    (f"CREATE STREAM s (a INT, b INT HEADERS) {WITH}", NotYetSupported,
     "HEADERS columns are not supported yet", None, 25),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, TIMESTAMP='b')", UnknownColumn, 'column "B" does not exist in "S"',
     "Known columns are: A.", 69),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, TIMESTAMP='a')", TypeMismatch,
     'TIMESTAMP column "A" must be BIGINT, TIMESTAMP or STRING, not INTEGER', None, 69),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, WINDOW_TYPE='SESSION')", NotYetSupported,
     "property WINDOW_TYPE is not supported yet", None, 69),
    (f"CREATE STREAM views (a INT) {WITH}", DuplicateObject, 'stream "VIEWS" already exists',
     "Drop it first, or write CREATE STREAM IF NOT EXISTS.", 15),
    (f"CREATE OR REPLACE STREAM views (a INT) {WITH}", NotYetSupported, 'replacing stream "VIEWS" is not supported yet',
     "DROP STREAM VIEWS first.", 26),
    (f"CREATE STREAM s {WITH}", NotYetSupported, "a CREATE without columns is not supported yet",
     "Write CREATE STREAM S (column type, …) WITH (…).", 15),
]  # fmt: skip

QUERIES = [
    ("CREATE STREAM s AS SELECT * FROM users", WrongObjectKind, "the result of this query is a table, not a stream",
     "Write CREATE TABLE S AS …", 1),
    ("CREATE TABLE t AS SELECT * FROM views", WrongObjectKind, "the result of this query is a stream, not a table",
     "Write CREATE STREAM T AS …", 1),
    ("CREATE STREAM s AS SELECT page, COUNT(*) FROM views GROUP BY page", WrongObjectKind,
     "the result of this query is a table, not a stream", "Write CREATE TABLE S AS …", 1),
    ("CREATE STREAM s AS SELECT page FROM views", BindError, "the key column ID is missing from the select list",
     "Write SELECT ID, …", 20),
    ("CREATE STREAM s AS SELECT id FROM views", BindError, "the result has no value columns",
     "Copy it into the value with AS_VALUE(ID) AS ID_1.", 20),
    ("CREATE STREAM s AS SELECT id, page, took page FROM views", BindError,
     'the result has two columns named "PAGE"', "Give one of them another name with AS.", 37),
    ("CREATE STREAM s AS SELECT id, rowtime FROM views", BindError, 'a column cannot be named "ROWTIME"',
     "Give it another name: ROWTIME AS ROWTIME_1.", 31),
    ("CREATE TABLE t AS SELECT COUNT(*) AS n FROM views GROUP BY page", BindError,
     "the grouping expression PAGE is missing from the select list", "Write SELECT PAGE, …", 19),
    ("CREATE TABLE t AS SELECT page, user, COUNT(*) FROM views GROUP BY page, user", BindError,
     "the key format KAFKA holds one column, not 2: PAGE, USER", "Write WITH (KEY_FORMAT='JSON').", 14),
    ("CREATE TABLE t AS SELECT page, user, COUNT(*) FROM views GROUP BY page", BindError,
     'column "USER" is neither aggregated nor in GROUP BY', "Add USER to GROUP BY, or aggregate it.", 32),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WHERE COUNT(*) > 1 GROUP BY page", BindError,
     "WHERE cannot have the aggregate COUNT", "Filter groups with HAVING, after GROUP BY.", 58),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views GROUP BY page HAVING took > 1", BindError,
     'HAVING names column "TOOK", which is not in GROUP BY', "Filter rows with WHERE, before GROUP BY.", 73),
    ("CREATE STREAM s AS SELECT id, page FROM views HAVING id > 1", BindError, "HAVING needs a GROUP BY",
     "Filter rows with WHERE.", 54),
    ("CREATE TABLE t AS SELECT COUNT(*) FROM views", BindError, "the aggregate COUNT needs a GROUP BY",
     "Group by a constant to aggregate everything: SELECT 1 AS k, … GROUP BY 1.", 26),
    ("CREATE TABLE t AS SELECT page, SUM(COUNT(*)) FROM views GROUP BY page", BindError,
     "aggregates cannot be nested: COUNT in SUM", None, 36),
    ("CREATE TABLE t AS SELECT page FROM views GROUP BY page", BindError,
     "GROUP BY needs an aggregate in the select list or in HAVING", None, 19),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views GROUP BY page, views.page", BindError,
     "GROUP BY has PAGE twice", None, 67),
    ("CREATE TABLE t AS SELECT name, COUNT(*) FROM users GROUP BY name", NotYetSupported,
     "GROUP BY over a table is not supported yet", None, 46),
    ("CREATE STREAM s AS SELECT * FROM views WHERE page", TypeMismatch, "WHERE must be BOOLEAN, not STRING", None, 46),
    ("CREATE STREAM s AS SELECT * FROM views EMIT FINAL", NotYetSupported,
     "EMIT FINAL is not supported here yet", None, 20),
    ("CREATE STREAM s AS SELECT * FROM views LIMIT 1", NotSupported,
     "LIMIT is not supported in a CREATE … AS", None, 20),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WINDOW TUMBLING (SIZE 1 DAY) GROUP BY page", NotYetSupported,
     "WINDOW is not supported yet", None, 52),
    ("CREATE STREAM s AS SELECT * FROM views JOIN users ON views.user = users.id", NotYetSupported,
     "JOIN is not supported yet", None, 40),
    ("CREATE STREAM s AS SELECT * FROM views PARTITION BY page", NotYetSupported, "PARTITION BY is not supported yet",
     None, 40),
    ("CREATE STREAM s WITH (KAFKA_TOPIC='views') AS SELECT * FROM views", BindError,
     "the query cannot write to the topic that it reads: 'views'",
     "Give it another topic: WITH (KAFKA_TOPIC='…').", 23),
    ("CREATE STREAM s AS SELECT id, rowoffset o FROM fast", NotSupported, "ROWOFFSET of stream FAST cannot be read",
     None, 31),
    ("CREATE STREAM s AS SELECT id, page FROM views WHERE rowtime > 'soon'", TypeMismatch, "'soon' is not a timestamp",
     "Write it as '2024-05-31T23:59:59.999', with the last parts left out if you like.", 63),
]  # fmt: skip

REST = [
    ("SELECT * FROM views", WrongObjectKind, '"VIEWS" is a stream and has no current rows',
     "Add EMIT CHANGES to follow it.", 15),
    ("SELECT * FROM views EMIT ALL", WrongObjectKind, 'EMIT ALL needs a table, and "VIEWS" is a stream',
     "SET 'auto.offset.reset'='earliest' and use EMIT CHANGES.", 15),
    ("SELECT * FROM users EMIT ALL", NotYetSupported, "EMIT ALL is not supported yet", None, 1),
    ("SELECT COUNT(*) FROM users", NotYetSupported, "COUNT is not supported in a SELECT yet",
     "Keep the aggregate in a table with CREATE TABLE … AS, and select from that.", 8),
    ("SELECT name FROM users GROUP BY name", NotYetSupported, "GROUP BY is not supported in a SELECT yet",
     "Keep the result in a table with CREATE TABLE … AS, and select from that.", 1),
    ("SELECT name FROM users ORDER BY name", NotYetSupported, "ORDER BY is not supported yet", None, 24),
    ("SELECT rowoffset FROM users", NotSupported, "ROWOFFSET is not supported in a pull", None, 8),
    ("SELECT NULL FROM users", TypeMismatch, "the type of NULL is not known here",
     "Give it a type, such as CAST(NULL AS STRING).", 8),
    ("SELECT page->* FROM views EMIT CHANGES", TypeMismatch, "only a STRUCT has fields to spread, not STRING", None, 8),
    ("INSERT INTO users VALUES ('1', 'x')", BindError, "expected 4 values, got 2", None, 27),
    ("INSERT INTO users (id, age) VALUES ('1', 'x')", TypeMismatch,
     'column "AGE" is INTEGER and cannot take STRING', None, 42),
    ("INSERT INTO users (id, age) VALUES ('1', 99999999999)", TypeMismatch,
     'column "AGE" is INTEGER and cannot take BIGINT', None, 42),
    ("INSERT INTO users (id, paid) VALUES ('1', 1.005)", TypeMismatch,
     'column "PAID" is DECIMAL(5, 2) and cannot hold 1.005', None, 43),
    ("INSERT INTO users (id, paid) VALUES ('1', -1000)", TypeMismatch,
     'column "PAID" is DECIMAL(5, 2) and cannot hold -1000', None, 43),
    ("INSERT INTO users (name) VALUES ('x')", BindError,
     'the primary key "ID" of table "USERS" needs a value', None, 13),
    ("INSERT INTO users (id, id) VALUES ('1', '1')", BindError, 'column "ID" is named twice', None, 24),
    ("INSERT INTO users (id, name) VALUES ('1', bob)", BindError, 'VALUES cannot name a column: "BOB"',
     "Write a text in single quotes: 'BOB'.", 43),
    ("INSERT INTO views SELECT * FROM fast", NotYetSupported, "INSERT INTO … SELECT is not supported yet", None, 1),
    ("DROP STREAM users", WrongObjectKind, '"USERS" is a table, not a stream', "Write TABLE USERS.", 13),
    ("DROP STREAM views", DependentObjects, 'cannot drop stream "VIEWS" because queries depend on it',
     "Terminate them first: TERMINATE CSAS_FAST_3;", 13),
    ("PAUSE q", NotYetSupported, "PAUSE is not supported yet", None, 1),
    ("EXPLAIN SELECT nme FROM users", UnknownColumn, 'column "NME" does not exist in "USERS"',
     'Did you mean "NAME"?', 16),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint", "column"),
    UNKNOWN + CREATE + QUERIES + REST,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_told_exactly(text, kind, message, hint, column):
    (parsed,) = parse(text)
    with pytest.raises(kind) as raised:
        bind(parsed.statement, CATALOG)
    error = raised.value
    assert (type(error), error.message, error.hint) == (kind, message, hint)
    assert (error.position.column if error.position else None) == column


def test_a_drop_names_every_query_that_depends_on_the_object():
    (parsed,) = parse("DROP STREAM views")
    with pytest.raises(DependentObjects) as raised:
        bind(parsed.statement, CATALOG)
    assert raised.value.detail == "Read by CSAS_FAST_3, CTAS_COUNTS_2."


def test_a_statement_that_is_nested_too_deeply_is_refused():
    (parsed,) = parse("SELECT * FROM users WHERE " + "NOT " * 5000 + "TRUE")
    with pytest.raises(NotSupported, match="the statement is nested too deeply"):
        bind(parsed.statement, CATALOG)
