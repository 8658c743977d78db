"""Errors of statements that do not fit the catalog: exact words, place and hint."""

import pytest

from holdfast.errors import (
    BadTime,
    BindError,
    DependentObjects,
    DuplicateObject,
    NotSupported,
    NotYetSupported,
    SyntaxProblem,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
    UnknownObject,
    UnknownProperty,
    WrongObjectKind,
)
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse

from .build import EVERYTHING, catalog_of

WINDOWED = """
CREATE STREAM hours (id INT KEY, n INT)
  WITH (KAFKA_TOPIC='h', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 HOUR');
"""
SHARED = "".join(f"CREATE STREAM both_{n} (a INT) WITH (KAFKA_TOPIC='both', VALUE_FORMAT='JSON');" for n in "ab")
WINDOW_TABLE = """
CREATE TABLE minutes (id INT PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC='m', VALUE_FORMAT='JSON', WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 MINUTE', RETENTION='1 HOUR');
"""
CATALOG = catalog_of(EVERYTHING + SHARED + WINDOWED + WINDOW_TABLE)
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
    (f"CREATE STREAM s (rowtime BIGINT) {WITH}", BindError, 'a column cannot be named "ROWTIME"',
     "Give it another name, for instance ROWTIME_1.", 18),
    ("CREATE STREAM s (a INT) WITH (VALUE_FORMAT='JSON')", BindError, "KAFKA_TOPIC is missing",
     "Write WITH (KAFKA_TOPIC='…', VALUE_FORMAT='JSON').", 15),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t')", BindError, "VALUE_FORMAT is missing",
     "Write VALUE_FORMAT='JSON', or SET 'ksql.persistence.default.format.value'='JSON'.", 15),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='a b', VALUE_FORMAT='JSON')", BindError,
     "'a b' is not a valid topic name",
     'Use at most 249 of the characters a-z, A-Z, 0-9, ".", "_" and "-".', 31),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, PARTITIONS=0)", BindError,
     "property PARTITIONS must be a whole number of at least 1, not 0",
     "Leave it out to use the number of the query's source, or of an existing topic.", 69),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, CLEANUP_POLICY='compact,compact')", BindError,
     "property CLEANUP_POLICY must be 'compact', 'delete' or 'compact,delete', not 'compact,compact'", None, 69),
    (f"CREATE STREAM s (a MAP<INT, INT>) {WITH}", BindError,
     'the value format JSON cannot hold column "A" of type MAP<INTEGER, INTEGER>',
     "The keys of a MAP must be STRING: write MAP<STRING, …>.", 58),
    (f"CREATE STREAM s (a STRUCT<x INT, x INT>) {WITH}", BindError, 'field "X" of a STRUCT is declared twice',
     "Give one of them another name.", 34),
    (f"CREATE STREAM s (a BYTES HEADER('g'), b BYTES HEADER('g'), c INT) {WITH}", BindError,
     "HEADER('g') is declared twice, as A and as B", "Leave one out.", 39),
    (f"CREATE STREAM s (a STRING) {WITH[:-1]}, TIMESTAMP='a', TIMESTAMP_FORMAT='nonsense{{')", BindError,
     "'nonsense{' is not a valid timestamp pattern",
     "Write it as 'yyyy-MM-dd HH:mm:ssX', with other letters in quotes: 'yyyy-MM-dd''T''HH:mm'.", 72),
    (f"CREATE STREAM s (a STRING) {WITH[:-1]}, TIMESTAMP='a', TIMESTAMP_FORMAT='YYYY-''W''ww')", NotYetSupported,
     "the letter Y in TIMESTAMP_FORMAT is not supported yet",
     "Leave out TIMESTAMP, and parse the supported part of the STRING with PARSE_TIMESTAMP in a query.", 72),
    ("CREATE TYPE string AS INT", BindError, 'a type cannot be named "STRING"',
     "Give it another name, for instance STRING_1.", 13),
    ("CREATE TYPE `Decimal` AS INT", BindError, 'a type cannot be named "Decimal"',
     "Give it another name, for instance DECIMAL_1.", 13),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON', VALUE_FORMAT='JSON')", BindError,
     "FORMAT and VALUE_FORMAT cannot both be given",
     "FORMAT sets both; write KEY_FORMAT and VALUE_FORMAT to set each.", 63),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO')", NotYetSupported,
     "the value format AVRO is not supported yet", "Supported value formats are: DELIMITED, JSON, KAFKA, NONE.", 48),
    ("CREATE STREAM s (a INT, b INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='KAFKA')", BindError,
     "the value format KAFKA holds one column, not 2: A, B", "Write WITH (VALUE_FORMAT='JSON').", 55),
    ("CREATE STREAM s (a MAP<STRING, INT>) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='DELIMITED')", BindError,
     'the value format DELIMITED cannot hold column "A" of type MAP<STRING, INTEGER>',
     "Write WITH (VALUE_FORMAT='JSON').", 61),
    ("CREATE STREAM s (a INT KEY, b INT) WITH (KAFKA_TOPIC='t', KEY_FORMAT='NONE', VALUE_FORMAT='JSON')", BindError,
     "the key format NONE holds no columns, not A", "Write WITH (KEY_FORMAT='JSON').", 59),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, VALUE_DELIMITER='|')", BindError,
     "VALUE_DELIMITER needs the format DELIMITED, not JSON", None, 48),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER=' ')", BindError,
     "property VALUE_DELIMITER must be one character or SPACE or TAB, not ' '",
     "Write VALUE_DELIMITER = 'TAB', for instance.", 74),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='DELIMITED', WRAP_SINGLE_VALUE=false)", BindError,
     "the value format DELIMITED does not take WRAP_SINGLE_VALUE = FALSE",
     "Leave WRAP_SINGLE_VALUE out.", 74),
    (f"CREATE STREAM s (a INT KEY, b INT KEY, c INT) {WITH}", BindError,
     "the key format KAFKA holds one column, not 2: A, B", "Write WITH (KEY_FORMAT='JSON').", 15),
    (f"CREATE STREAM s (a BOOLEAN KEY, c INT) {WITH}", BindError,
     'the key format KAFKA cannot hold column "A" of type BOOLEAN', "Write WITH (KEY_FORMAT='JSON').", 15),
    (f"CREATE STREAM s (a INT, b INT HEADERS) {WITH}", TypeMismatch,
     'the HEADERS column "B" must be ARRAY<STRUCT<`KEY` STRING, `VALUE` BYTES>>, not INTEGER',
     "Write B ARRAY<STRUCT<`KEY` STRING, `VALUE` BYTES>> HEADERS.", 25),
    (f"CREATE STREAM s (a INT, b STRING HEADER('h')) {WITH}", TypeMismatch,
     'the HEADER(\'h\') column "B" must be BYTES, not STRING',
     "Write B BYTES HEADER('h').", 25),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, TIMESTAMP='b')", UnknownColumn, 'column "B" does not exist in "S"',
     "Known columns are: A.", 69),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, TIMESTAMP='a')", TypeMismatch,
     'TIMESTAMP column "A" must be BIGINT, TIMESTAMP or STRING, not INTEGER', None, 69),
    (f"CREATE STREAM s (a INT) {WITH[:-1]}, WINDOW_TYPE='SESSION')", BindError,
     "a windowed topic needs a key column",
     "Declare the columns of the key as KEY columns, or as the PRIMARY KEY of a table.", 69),
    (f"CREATE STREAM s (a INT KEY, b INT) {WITH[:-1]}, WINDOW_TYPE='SESSION', WINDOW_SIZE='1 DAY')", BindError,
     "WINDOW_SIZE cannot be set for SESSION windows",
     "Leave WINDOW_SIZE out.", 103),
    (f"CREATE STREAM s (a INT KEY, b INT) {WITH[:-1]}, WINDOW_TYPE='HOPPING')", BindError,
     "WINDOW_SIZE is missing for HOPPING windows", "Write WINDOW_SIZE='1 HOUR'.", 80),
    (f"CREATE STREAM s (a INT KEY, b INT) {WITH[:-1]}, WINDOW_TYPE='HOPPING', WINDOW_SIZE='99999999999999 DAYS')",
     BadTime, "99999999999999 DAYS is too long", "Write at most 3650000 DAYS.", 103),
    (f"CREATE STREAM views (a INT) {WITH}", DuplicateObject, 'stream "VIEWS" already exists',
     "Drop it first, or write CREATE STREAM IF NOT EXISTS.", 15),
    (f"CREATE OR REPLACE STREAM views (a INT) {WITH}", NotSupported,
     'stream "VIEWS" cannot be replaced in this way',
     "DROP STREAM VIEWS first, or give the new one another name.", 26),
    (f"CREATE OR REPLACE STREAM fast (a INT) {WITH}", NotSupported, 'stream "FAST" cannot be replaced in this way',
     "DROP STREAM FAST first, or give the new one another name.", 26),
    ("CREATE OR REPLACE TABLE users AS SELECT page, COUNT(*) AS n FROM views GROUP BY page", NotSupported,
     'table "USERS" cannot be replaced in this way',
     "DROP TABLE USERS first, or give the new one another name.", 25),
    (f"CREATE STREAM s {WITH}", NotYetSupported, "a CREATE without columns is not supported yet",
     "Write CREATE STREAM S (column type, …) WITH (…).", 15),
]  # fmt: skip

IN_T = f"CREATE TABLE t (a INT PRIMARY KEY, b INT) {WITH[:-1]}"
IN_S = f"CREATE STREAM s (a INT KEY, b INT) {WITH[:-1]}"
TUMBLING = "WINDOW_TYPE='TUMBLING'"

WINDOW_TABLES = [
    (f"{IN_T}, {TUMBLING})", BindError,
     "WINDOW_SIZE is missing for TUMBLING windows", "Write WINDOW_SIZE='1 HOUR'.", 87),
    (f"{IN_T}, {TUMBLING}, WINDOW_SIZE='0 SECONDS')", BindError,
     "property WINDOW_SIZE must be longer than zero, not '0 SECONDS'",
     "Write WINDOW_SIZE='10 SECONDS', for instance.", 111),
    (f"{IN_S}, {TUMBLING}, WINDOW_SIZE='0 SECONDS')", BindError,
     "property WINDOW_SIZE must be longer than zero, not '0 SECONDS'",
     "Write WINDOW_SIZE='10 SECONDS', for instance.", 104),
    (f"{IN_T}, {TUMBLING}, WINDOW_SIZE='-1 HOUR')", BindError,
     "property WINDOW_SIZE must be longer than zero, not '-1 HOUR'",
     "Write WINDOW_SIZE='10 SECONDS', for instance.", 111),
    (f"{IN_T}, {TUMBLING}, WINDOW_SIZE='an hour')", BindError,
     "property WINDOW_SIZE must be a number and a unit of time, such as '10 SECONDS', not 'an hour'", None, 111),
    (f"{IN_T}, WINDOW_SIZE='1 HOUR')", BindError, "WINDOW_SIZE needs WINDOW_TYPE", None, 87),
    (f"{IN_T}, WINDOW_TYPE='SESSION', WINDOW_SIZE='1 HOUR')", BindError,
     "WINDOW_SIZE cannot be set for SESSION windows", "Leave WINDOW_SIZE out.", 110),
    (f"{IN_T}, WINDOW_TYPE='SLIDING')", BindError,
     "property WINDOW_TYPE must be one of TUMBLING, HOPPING, SESSION, not 'SLIDING'", None, 87),
    (f"{IN_T}, {TUMBLING}, WINDOW_SIZE='1 HOUR', RETENTION='59 MINUTES')", BindError,
     'the retention of "T" must be no smaller than its window size',
     "Write RETENTION='1 HOUR' or more, or leave it out.", 133),
    (f"{IN_T}, WINDOW_TYPE='SESSION', RETENTION='0 SECONDS')", BindError,
     "property RETENTION must be longer than zero, not '0 SECONDS'",
     "Write RETENTION='10 SECONDS', for instance.", 110),
    (f"{IN_T}, RETENTION='1 DAY')", BindError, "RETENTION needs WINDOW_TYPE",
     "To make windows of its records, declare a stream over it and group that with WINDOW. "
     "For how long a table's history can be read, write RETAIN_HISTORY.", 87),
    (f"{IN_S}, {TUMBLING}, WINDOW_SIZE='1 HOUR', RETENTION='1 DAY')", BindError,
     '"S" is a stream and retains no windows', "Leave RETENTION out, or write CREATE TABLE.", 126),
    (f"{IN_S}, RETENTION='1 DAY')", BindError,
     '"S" is a stream and retains no windows', "Leave RETENTION out, or write CREATE TABLE.", 80),
    (f"{IN_T}, WINDOW_TOPIC='TOPIC')", BindError, "WINDOW_TOPIC needs WINDOW_TYPE",
     "Add WINDOW_TYPE, or leave WINDOW_TOPIC out.", 87),
    (f"{IN_T}, WINDOW_TYPE='SESSION', WINDOW_TOPIC='STORE')", BindError,
     "property WINDOW_TOPIC must be one of TOPIC, CHANGELOG, not 'STORE'",
     "CHANGELOG is the changelog of a window store, TOPIC everything else.", 110),
    (f"{IN_S}, WINDOW_TYPE='SESSION', WINDOW_TOPIC='CHANGELOG')", BindError,
     '"S" is a stream and cannot have a WINDOW_TOPIC', "Leave WINDOW_TOPIC out, or write CREATE TABLE.", 103),
    ("CREATE TABLE t AS SELECT id, ROWOFFSET AS o FROM minutes", NotSupported,
     "ROWOFFSET of the windowed table MINUTES cannot be read",
     "Leave it out, or read the topic as a stream.", 30),
    ("CREATE TABLE t AS SELECT id, COUNT(*) AS n FROM minutes WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id", NotSupported,
     "WINDOW is only allowed on streams, not on tables",
     "Leave WINDOW out, or declare a stream over the table's topic and group that.", 57),
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
     "WHERE cannot contain the aggregate COUNT", "Filter groups with HAVING, after GROUP BY.", 58),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views GROUP BY page HAVING took > 1", BindError,
     'HAVING uses column "TOOK", which is not in GROUP BY', "Filter rows with WHERE, before GROUP BY.", 73),
    ("CREATE STREAM s AS SELECT id, page FROM views HAVING id > 1", BindError, "HAVING needs a GROUP BY",
     "Filter rows with WHERE.", 54),
    ("CREATE TABLE t AS SELECT COUNT(*) FROM views", BindError, "the aggregate COUNT needs a GROUP BY",
     "Group by a constant to aggregate everything: SELECT 1 AS k, … GROUP BY 1.", 26),
    ("CREATE TABLE t AS SELECT page, SUM(COUNT(*)) FROM views GROUP BY page", BindError,
     "aggregates cannot be nested: COUNT in SUM",
     "Compute COUNT in a table first, and aggregate that.", 36),
    ("CREATE TABLE t AS SELECT page FROM views GROUP BY page", BindError,
     "GROUP BY needs an aggregate in the select list or in HAVING",
     "Add one, for instance COUNT(*).", 19),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views GROUP BY page, views.page", BindError,
     "GROUP BY has PAGE twice",
     "Leave one out.", 67),
    ("CREATE TABLE t AS SELECT name, MAX(age) FROM users GROUP BY name", NotSupported,
     "the aggregate MAX is not supported over a table",
     "Aggregates over tables are: ATTR, AVG, COLLECT_LIST, CORRELATION, COUNT, HISTOGRAM, STDDEV_SAMP, STDDEV_SAMPLE, "
     "SUM, SUM_LIST. Streams support all.", 32),
    ("CREATE STREAM s AS SELECT * FROM views WHERE page", TypeMismatch, "WHERE must be BOOLEAN, not STRING",
     "Compare it with something: PAGE = …", 46),
    ("CREATE STREAM s AS SELECT * FROM views EMIT FINAL", BindError, "EMIT FINAL needs a WINDOW", None, 20),
    ("CREATE STREAM s AS SELECT * FROM views EMIT ALL", NotSupported,
     "EMIT ALL is only allowed in a standalone SELECT", "Write EMIT CHANGES.", 20),
    ("CREATE STREAM s AS SELECT * FROM views LIMIT 1", NotSupported,
     "LIMIT is not supported in a CREATE … AS", "Leave it out, and limit the rows when you read them.", 20),
    ("CREATE STREAM s WITH (KAFKA_TOPIC='views') AS SELECT * FROM views", BindError,
     "the query cannot write to the topic that it reads: 'views'",
     "Give it another topic: WITH (KAFKA_TOPIC='…').", 23),
    ("CREATE STREAM s AS SELECT id, rowoffset o FROM fast", NotSupported, "ROWOFFSET of stream FAST cannot be read",
     None, 31),
    ("CREATE STREAM s AS SELECT id, DATE '2020-13-01' AS d FROM views", TypeMismatch, "'2020-13-01' is not a DATE",
     "Write it as '2024-05-31'.", 36),
    ("CREATE STREAM s AS SELECT id, page FROM views WHERE FROM_UNIXTIME(ts) > 'nonsense'", TypeMismatch,
     "'nonsense' is not a TIMESTAMP", "Write it as '2024-05-31T23:59:59.999'.", 73),
    ("CREATE STREAM s AS SELECT id, page FROM views WHERE FROM_UNIXTIME(ts) BETWEEN '2020' AND '2020-02-30'",
     TypeMismatch, "'2020-02-30' is not a TIMESTAMP", "Write it as '2024-05-31T23:59:59.999'.", 90),
    ("SELECT name FROM users WHERE CAST(name AS TIME) IN ('10:00', '25:00')", TypeMismatch, "'25:00' is not a TIME",
     "Write it as '23:59:59.999'.", 62),
    ("SELECT COUNT(*) FROM users WHERE CAST(name AS DATE) = 'nonsense'", TypeMismatch, "'nonsense' is not a DATE",
     "Write it as '2024-05-31'.", 55),
    ("CREATE STREAM s AS SELECT id, STRUCT(a := 1, a := 2) AS t FROM views", BindError,
     'field "A" of a STRUCT is declared twice', "Give one of them another name.", 51),
    ("CREATE STREAM s AS SELECT id, page || 1 AS x FROM views", TypeMismatch, "|| takes STRINGs, not INTEGER",
     "Write CAST(… AS STRING).", 39),
    ("CREATE STREAM s AS SELECT id, page FROM views WHERE rowtime > 'soon'", TypeMismatch, "'soon' is not a timestamp",
     "Write it as '2024-05-31T23:59:59.999'; trailing parts are optional.", 63),
]  # fmt: skip

WINDOWS = [
    ("CREATE TABLE t AS SELECT page, LATEST_BY_OFFSET(user, id) FROM views GROUP BY page", BindError,
     "argument 2 of LATEST_BY_OFFSET must be a constant, not ID",
     "Write a value that is the same for all rows.", 55),
    ("CREATE STREAM s AS SELECT * FROM views WINDOW TUMBLING (SIZE 1 DAY)", BindError, "WINDOW needs a GROUP BY",
     "Add GROUP BY, or leave out WINDOW.", 40),
    ("CREATE TABLE t AS SELECT name, COUNT(*) FROM users WINDOW SESSION (1 DAY) GROUP BY name", NotSupported,
     "WINDOW is only allowed on streams, not on tables",
     "Leave WINDOW out, or declare a stream over the table's topic and group that.", 52),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WINDOW HOPPING (SIZE 1 DAY, ADVANCE BY 2 DAYS) GROUP BY page",
     BindError, "a hopping window must advance by more than 0 and by at most its SIZE",
     "If they are equal, write a TUMBLING window.", 52),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WINDOW TUMBLING (SIZE 0 DAYS) GROUP BY page", BindError,
     "the SIZE of a window must be greater than zero", "Write at least 1 MILLISECOND.", 52),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WINDOW SESSION (0 DAYS) GROUP BY page", BindError,
     "the gap of a window must be greater than zero", "Write at least 1 MILLISECOND.", 52),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WINDOW TUMBLING (SIZE 9999999999 DAYS) GROUP BY page", BadTime,
     "9999999999 DAYS is too long", "Write at most 3650000 DAYS.", 74),
    ("CREATE TABLE t AS SELECT page, MAX(windowstart) FROM views WINDOW TUMBLING (SIZE 1 DAY) GROUP BY page", BindError,
     "MAX cannot use WINDOWSTART", None, 36),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WINDOW TUMBLING (SIZE 1 DAY) GROUP BY page, windowend",
     BindError, "GROUP BY cannot use WINDOWEND", None, 96),
    ("CREATE TABLE t AS SELECT page, windowstart, COUNT(*) FROM views GROUP BY page", BindError,
     'a column cannot be named "WINDOWSTART"', "Give it another name: WINDOWSTART AS WINDOWSTART_1.", 32),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views WINDOW TUMBLING (SIZE 1 DAY)", BindError,
     'column "PAGE" is neither aggregated nor in GROUP BY', "Add PAGE to GROUP BY, or aggregate it.", 26),
    ("CREATE TABLE t AS SELECT page, windowstart, COUNT(*) FROM views WINDOW TUMBLING (SIZE 1 DAY) GROUP BY page",
     BindError, 'a column cannot be named "WINDOWSTART"', "Give it another name: WINDOWSTART AS WINDOWSTART_1.", 32),
]  # fmt: skip

PARTITIONS = [
    ("CREATE TABLE t AS SELECT * FROM users PARTITION BY name", NotSupported, "a table cannot be repartitioned",
     "Aggregate it by the new key with GROUP BY.", 52),
    ("CREATE TABLE t AS SELECT page, COUNT(*) FROM views GROUP BY page PARTITION BY page", BindError,
     "a query cannot have both GROUP BY and PARTITION BY", None, 79),
    ("CREATE STREAM s AS SELECT * FROM hours PARTITION BY n", NotSupported,
     "a windowed stream cannot be repartitioned", "Aggregate it by the new key with GROUP BY.", 53),
    ("CREATE STREAM s AS SELECT * FROM views PARTITION BY NULL, page", BindError,
     "PARTITION BY NULL cannot be combined with other columns",
     "Leave out NULL or the other columns.", 53),
    ("CREATE STREAM s AS SELECT * FROM views PARTITION BY page, views.page", BindError, "PARTITION BY has PAGE twice",
     None, 59),
    ("CREATE STREAM s AS SELECT id, user FROM views PARTITION BY page", BindError,
     "the partitioning expression PAGE is missing from the select list", "Write SELECT PAGE, …", 20),
    ("CREATE STREAM s AS SELECT page, page p, user FROM views PARTITION BY page", BindError,
     "the partitioning expression PAGE is selected more than once, as PAGE and P",
     "Copy it into the value with AS_VALUE(PAGE) AS P.", 33),
    ("CREATE STREAM s AS SELECT * FROM views PARTITION BY tags", BindError,
     'the key format KAFKA cannot hold column "TAGS" of type ARRAY<STRING>', "Write WITH (KEY_FORMAT='JSON').", 15),
    ("CREATE STREAM s WITH (KEY_FORMAT='JSON') AS SELECT * FROM views PARTITION BY NULL", BindError,
     "KEY_FORMAT is given, but the result has no key columns", "Leave it out.", 23),
    ("CREATE STREAM s AS SELECT *, EXPLODE(EXPLODE(ARRAY[tags])) t FROM views", BindError,
     "table functions cannot be nested: EXPLODE in EXPLODE", None, 38),
    ("CREATE STREAM s AS SELECT * FROM views WHERE EXPLODE(tags) = 'x'", BindError,
     "WHERE cannot contain the table function EXPLODE", "Table functions are only allowed in the select list.", 46),
    ("CREATE TABLE t AS SELECT id, EXPLODE(ARRAY[name]) n FROM users", NotSupported,
     "the table function EXPLODE is only allowed on streams, not on tables", None, 30),
    ("CREATE TABLE t AS SELECT page, EXPLODE(tags), COUNT(*) FROM views GROUP BY page, tags", NotSupported,
     "the table function EXPLODE cannot be used in an aggregation",
     "Create a stream of its rows first, and aggregate that stream.", 32),
]  # fmt: skip

JOIN = "CREATE STREAM s AS SELECT * FROM views v JOIN"
JOINS = [
    (f"{JOIN} users u ON v.user = u.nme", UnknownColumn, 'column "NME" does not exist in "USERS"',
     'Did you mean "NAME"?', 67),
    (f"{JOIN} users u ON v.user = w.id", UnknownObject, 'relation "W" does not exist', "Known names are: V, U.", 67),
    (f"{JOIN} users u ON id = user", BindError, 'column "ID" is ambiguous', "Write V.ID or U.ID.", 58),
    (f"{JOIN} users v ON v.user = v.id", BindError, 'two relations of the query are called "V"',
     "Give one of them another name: USERS AS other.", 47),
    (f"{JOIN} users u ON v.user > u.id", BindError,
     "a join needs one condition of the form a = b, not (V.USER > U.ID)", "Put further conditions into WHERE.", 58),
    (f"{JOIN} users u ON v.user = u.id AND v.page = u.name", BindError,
     "a join needs one condition of the form a = b, not ((V.USER = U.ID) AND (V.PAGE = U.NAME))",
     "Put further conditions into WHERE.", 58),
    (f"{JOIN} users u ON v.user = 'x'", BindError,
     "each side of a join's condition must name columns of one relation: 'x' in (V.USER = 'x')",
     "Put further conditions into WHERE.", 67),
    (f"{JOIN} users u ON v.user = v.page", BindError,
     "the condition of the join with U must compare it with an earlier relation: (V.USER = V.PAGE)",
     "Earlier relations are: V.", 58),
    (f"{JOIN} users u ON v.id = u.id", TypeMismatch,
     "a join needs the same type on both sides, not INTEGER = STRING", "Write CAST(V.ID AS STRING), for instance.", 58),
    (f"{JOIN} users u ON v.user = u.name", BindError,
     "a join with the table USERS must be on its primary key ID: (V.USER = U.NAME)",
     "Write ON … = U.ID.", 58),
    (f"{JOIN} users u WITHIN 1 DAY ON v.user = u.id", BindError,
     "WITHIN is only allowed in joins of two streams", "Leave it out.", 42),
    (f"{JOIN} fast f ON v.id = f.id", BindError, "a join of two streams needs WITHIN",
     "Write JOIN FAST WITHIN 1 HOUR ON …", 42),
    (f"{JOIN} fast f WITHIN 1 YEAR ON v.id = f.id", SyntaxProblem, '"YEAR" is not a unit of time',
     "Known units are: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS.", 63),
    (f"{JOIN} fast f WITHIN 99999999999999 DAYS ON v.id = f.id", BadTime, "99999999999999 DAYS is too long",
     "Write at most 3650000 DAYS.", 61),
    ("CREATE STREAM s AS SELECT * FROM views v FULL JOIN users u ON v.user = u.id", NotSupported,
     "a join of a stream with a table cannot be FULL OUTER", "Only INNER and LEFT joins are supported.", 47),
    ("CREATE STREAM s AS SELECT * FROM users u JOIN views v ON v.user = u.id", NotSupported,
     "the table USERS cannot be joined with the stream VIEWS", "Write VIEWS first, and join the table to it.", 47),
    ("CREATE STREAM s AS SELECT * FROM views a JOIN views b WITHIN 1 DAY ON a.id = b.id", NotSupported,
     "VIEWS cannot be joined with itself",
     "Create a copy of it first: CREATE STREAM … AS SELECT * FROM VIEWS.", 47),
    ("CREATE TABLE t AS SELECT * FROM users u RIGHT JOIN counts c ON u.name = c.page", NotSupported,
     "a join on a foreign key cannot be RIGHT", "Only INNER and LEFT joins are supported.", 47),
    ("CREATE STREAM s AS SELECT v.page, u.name FROM views v JOIN users u ON v.user = u.id", BindError,
     "the join column V.USER or U.ID is missing from the select list", "Write SELECT V.USER, …", 20),
    ("CREATE TABLE t AS SELECT c.page, u.name FROM users u JOIN counts c ON u.name = c.page", BindError,
     "the key column U.ID is missing from the select list", "Write SELECT U.ID, …", 19),
]  # fmt: skip

CONSTANTS = [
    ("CREATE STREAM p AS SELECT FORMAT_DATE(FROM_DAYS(CAST(ts AS INT)), 'YYYY-MM-dd') FROM views", BindError,
     "FORMAT_DATE: YYYY is not supported in a pattern", "Write yyyy for the year of a date.", 67),
    ("CREATE STREAM p AS SELECT PARSE_DATE(page, 'yyyy Q') FROM views", BindError,
     "PARSE_DATE: Q is not supported in a pattern", "DESCRIBE FUNCTION lists the unsupported letters.", 44),
    ("SELECT FORMAT_TIMESTAMP(FROM_UNIXTIME(1), 'ww') FROM users", BindError,
     "FORMAT_TIMESTAMP: ww is not supported in a pattern", "DESCRIBE FUNCTION lists the unsupported letters.", 43),
    ("SELECT * FROM users WHERE STRINGTODATE(name, 'EEEEE') = 1", BindError,
     "STRINGTODATE: EEEEE is not supported in a pattern", "DESCRIBE FUNCTION lists the unsupported letters.", 46),
    ("CREATE TABLE t AS SELECT page, LATEST_BY_OFFSET(ts, 0) FROM views GROUP BY page", BindError,
     "LATEST_BY_OFFSET: the count must be at least 1", "Write a positive number.", 53),
    ("CREATE TABLE t AS SELECT page, EARLIEST_BY_OFFSET(ts, 0, false) FROM views GROUP BY page", BindError,
     "EARLIEST_BY_OFFSET: the count must be at least 1", "Write a positive number.", 55),
    ("CREATE TABLE t AS SELECT page, TOPK(ts, page, 0) FROM views GROUP BY page", BindError,
     "TOPK: the count must be at least 1", "Write a positive number.", 47),
    ("SELECT TOPKDISTINCT(name, 0) FROM users", BindError,
     "TOPKDISTINCT: the count must be at least 1", "Write a positive number.", 27),
]  # fmt: skip

REST = [
    ("SELECT * FROM views", WrongObjectKind, '"VIEWS" is a stream and has no current rows',
     "Add EMIT CHANGES to follow it.", 15),
    ("SELECT * FROM views EMIT ALL", WrongObjectKind, 'EMIT ALL needs a table, but "VIEWS" is a stream',
     "SET 'auto.offset.reset'='earliest' and use EMIT CHANGES: past rows come first, then new ones.", 15),
    ("ALTER TABLE users SET (RETAIN HISTORY = FOR 'long')", BadTime, "'long' is not a valid duration",
     "Write it as '1h', '90 minutes' or '1 day 6 hours'.", 24),
    ("ALTER STREAM views SET (RETAIN HISTORY = FOR '1h')", BindError, '"VIEWS" is a stream and has no history',
     "Use RETAIN HISTORY only on tables.", 25),
    ("SELECT COUNT(*) FROM users EMIT CHANGES", NotYetSupported, "COUNT is not supported in a push query yet",
     "Store the aggregate in a table with CREATE TABLE … AS, and select from that.", 8),
    ("SELECT name FROM users GROUP BY name EMIT CHANGES", NotYetSupported,
     "GROUP BY is not supported in a push query yet",
     "Store the result in a table with CREATE TABLE … AS, and select from that.", 1),
    ("SELECT name FROM users ORDER BY name EMIT CHANGES", NotYetSupported, "ORDER BY is not supported yet",
     "Leave it out, and order the rows when you read them.", 24),
    ("SELECT rowoffset FROM users", NotSupported, "ROWOFFSET of a table is not supported in a pull query",
     "Store it as a column: CREATE TABLE … AS SELECT …, ROWOFFSET AS …, and select from that.", 8),
    ("SELECT id FROM users WHERE rowpartition = 1 EMIT CHANGES", NotSupported,
     "ROWPARTITION of a table is not supported in a push query",
     "Store it as a column: CREATE TABLE … AS SELECT …, ROWPARTITION AS …, and select from that.", 28),
    ("SELECT NULL FROM users", TypeMismatch, "the type of NULL is not known here",
     "Give it a type, such as CAST(NULL AS STRING).", 8),
    ("SELECT page->* FROM views EMIT CHANGES", TypeMismatch, "->* needs a STRUCT, not STRING", None, 8),
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
    ("INSERT INTO users (id, id) VALUES ('1', '1')", BindError, 'column "ID" is listed twice', None, 24),
    ("INSERT INTO users (id, name) VALUES ('1', bob)", BindError, 'VALUES cannot name a column: "BOB"',
     "Write a string in single quotes: 'BOB'.", 43),
    ("INSERT INTO users SELECT * FROM users", WrongObjectKind,
     'INSERT INTO … SELECT needs a stream, but "USERS" is a table',
     "Write CREATE TABLE … AS SELECT.", 13),
    ("INSERT INTO fast SELECT id, page FROM views", TypeMismatch,
     'the columns of the query do not match those of "FAST"',
     "Select the same names and types in the same order.", 18),
    ("INSERT INTO fast SELECT * FROM users", WrongObjectKind,
     '"FAST" is a stream, but the result of this query is a table', None, 18),
    ("INSERT INTO fast WITH (QUERY_ID='a b') SELECT * FROM views", BindError,
     "property QUERY_ID must be a name, not 'a b'", 'Use the letters a-z and A-Z, digits and "_".', 24),
    ("ALTER STREAM fast ADD COLUMN x INT", NotSupported, 'stream "FAST" is maintained by a query and cannot be altered',
     "Write CREATE OR REPLACE STREAM FAST AS …", 14),
    ("ALTER STREAM views ADD page INT", BindError, 'column "PAGE" already exists in "VIEWS"', None, 24),
    ("DROP TYPE address", UnknownObject, 'type "ADDRESS" does not exist', "There are no names yet.", 11),
    ("DROP STREAM users", WrongObjectKind, '"USERS" is a table, not a stream', "Write TABLE USERS.", 13),
    ("DROP STREAM views", DependentObjects, 'cannot drop stream "VIEWS" because queries depend on it',
     "Terminate them first: TERMINATE CSAS_FAST_3;", 13),
    ("DROP STREAM both_a DELETE TOPIC", DependentObjects,
     'the topic of stream "BOTH_A" is used by other objects',
     "Drop them first, or leave out DELETE TOPIC.", 13),
    ("PAUSE q", UnknownObject, 'query "Q" does not exist', "Known names are: CSAS_FAST_3, CTAS_COUNTS_2.", 7),
    *(
        (text, NotYetSupported, f"{text} is not supported yet", None, 1)
        for text in ("LIST SOURCE CONNECTORS", "SHOW SINK CONNECTORS", "SHOW CONNECTOR PLUGINS", "SHOW CONNECTORS")
    ),
    ("DROP CONNECTOR q", NotYetSupported, "DROP CONNECTOR is not supported yet", None, 1),
    ("EXPLAIN SELECT nme FROM users", UnknownColumn, 'column "NME" does not exist in "USERS"',
     'Did you mean "NAME"?', 16),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint", "column"),
    UNKNOWN + CREATE + WINDOW_TABLES + QUERIES + WINDOWS + PARTITIONS + JOINS + CONSTANTS + REST,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_type_errors_are_reported_exactly(text, kind, message, hint, column):
    with pytest.raises(kind) as raised:
        bind(parse(text)[0].statement, CATALOG)
    error = raised.value
    assert (type(error), error.message, error.hint) == (kind, message, hint)
    assert (error.position.column if error.position else None) == column


@pytest.mark.parametrize("text", ["2020", "2020-1-1", "2020-01-01 10:20", "2020-01-01T10:20:30+02:00", "12020-01-01"])
def test_what_can_be_read_as_a_timestamp_may_be_written(text):
    bind(parse(f"CREATE STREAM s AS SELECT * FROM views WHERE FROM_UNIXTIME(ts) > '{text}'")[0].statement, CATALOG)


@pytest.mark.parametrize(
    ("properties", "detail"),
    [
        ("WINDOW_TYPE='HOPPING', WINDOW_SIZE='2 MINUTES', RETENTION='1 HOUR'",
         "Its window would change from HOPPING of 60 seconds to HOPPING of 120 seconds."),
        ("WINDOW_TYPE='SESSION', RETENTION='1 HOUR'",
         "Its window would change from HOPPING of 60 seconds to SESSION."),
        ("PARTITIONS=1", "Its window would change from HOPPING of 60 seconds to none."),
        ("WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 MINUTE', RETENTION='1 HOUR', WINDOW_TOPIC='CHANGELOG'",
         "Its window topic would change from TOPIC to CHANGELOG."),
        ("WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 MINUTE', RETENTION='90 MINUTES'",
         "Its retention would change from 1 hour to 1 hour 30 minutes."),
        ("WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 MINUTE'",
         "Its retention would change from 1 hour to 1 day 1 minute."),
    ],
)  # fmt: skip
def test_a_table_that_is_replaced_keeps_its_windows_layout_and_retention(properties, detail):
    text = f"CREATE OR REPLACE TABLE minutes (id INT PRIMARY KEY, n INT) {WITH[:-1]}, {properties})"
    (parsed,) = parse(text.replace("'t'", "'m'"))
    with pytest.raises(NotSupported) as raised:
        bind(parsed.statement, CATALOG)
    assert (raised.value.detail, raised.value.position and raised.value.position.column) == (detail, 25)


def test_a_retention_that_is_too_short_says_both_lengths():
    (parsed,) = parse(f"{IN_T}, {TUMBLING}, WINDOW_SIZE='1 HOUR', RETENTION='90 SECONDS')")
    with pytest.raises(BindError) as raised:
        bind(parsed.statement, CATALOG)
    assert str(raised.value.detail).startswith("Got size=1 hour, retention=1 minute 30 seconds.")


def test_a_join_on_a_foreign_key_says_why_it_cannot_be_right():
    (parsed,) = parse("CREATE TABLE t AS SELECT * FROM users u RIGHT JOIN counts c ON u.name = c.page")
    with pytest.raises(NotSupported) as raised:
        bind(parsed.statement, CATALOG)
    assert raised.value.detail is not None
    assert raised.value.detail.startswith("The result has the key of the left table")


def test_a_drop_names_every_query_that_depends_on_the_object():
    (parsed,) = parse("DROP STREAM views")
    with pytest.raises(DependentObjects) as raised:
        bind(parsed.statement, CATALOG)
    assert raised.value.detail == "It is read by CSAS_FAST_3, CTAS_COUNTS_2."


def test_a_statement_that_is_nested_too_deeply_is_refused():
    (parsed,) = parse("SELECT * FROM users WHERE " + "NOT " * 5000 + "TRUE")
    with pytest.raises(NotSupported, match="the statement is nested too deeply"):
        bind(parsed.statement, CATALOG)
