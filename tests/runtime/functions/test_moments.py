"""What functions of dates and times give for values that are easily got wrong."""

from datetime import date, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.errors import TypeMismatch
from holdfast.runtime.compiler.sql import render
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.scope import Scope

from .engines import unequal

NULL = "CAST(NULL AS STRING)"
MOMENT = "TIMESTAMP '2018-05-11T21:58:33.123'"
# A pattern or zone that is only known when a row is.
LATER = "CONCAT('{}', '')"


def later(text: str) -> str:
    return LATER.format(text.replace("'", "''"))


TEXTS: list[tuple[str, Any]] = [
    ("FORMAT_DATE(DATE '2022-01-31', 'dd-MMM-yyyy')", "31-Jan-2022"),
    (f"FORMAT_DATE(DATE '1969-12-31', {later(chr(39).join(('dd-MM-yyyy', 'Sophia', '')))})", "31-12-1969Sophia"),
    ("FORMAT_DATE(DATE '2022-01-31', 'uuuu ''u''')", "2022 u"),
    (f"FORMAT_DATE(DATE '2022-01-31', {later('uuuu')})", "2022"),
    ("FORMAT_DATE(DATE '2022-01-31', 'HH')", None),
    (f"FORMAT_DATE(DATE '2022-01-31', {later('HH')})", None),
    ("FORMAT_DATE(DATE '2022-01-31', 'no pattern')", None),
    (f"FORMAT_DATE(DATE '2022-01-31', {NULL})", None),
    ("FORMAT_DATE(CAST(NULL AS DATE), 'yyyy')", None),
    ("DATETOSTRING(17662, 'yyyy-MM-dd')", "2018-05-11"),
    ("DATETOSTRING(-1, 'EEE dd')", "Wed 31"),
    ("DATETOSTRING(CAST(NULL AS INT), 'yyyy')", None),
    ("FORMAT_TIME(TIME '00:01:05', 'HH_mm_ss_SSS')", "00_01_05_000"),
    (f"FORMAT_TIME(TIME '00:20:34', {later(chr(39).join(('HHmmss', 'AAAAA', '')))})", "002034AAAAA"),
    ("FORMAT_TIME(TIME '00:00', 'yyyy')", None),
    ("FORMAT_TIME(CAST(NULL AS TIME), 'HH')", None),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'yyyy-MM-dd HH:mm:ss.SSS')", "2018-05-11 21:58:33.123"),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'zzz VV X')", "GMT GMT Z"),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'HH:mm zzz', 'Europe/London')", "22:58 BST"),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'HH:mm xxx', '+0530')", "03:28 +05:30"),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'HH:mm', 'Europe/London')", "22:58"),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'HH:mm', {later('Europe/London')})", "22:58"),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'HH:mm', {later('Nowhere')})", None),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'HH:mm', 'Nowhere')", None),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'HH:mm z', 'Nowhere')", None),
    (f"FORMAT_TIMESTAMP({MOMENT}, {later('HH:mm z')}, 'Europe/London')", None),
    (f"FORMAT_TIMESTAMP({MOMENT}, 'YYYY z', 'Europe/London')", None),
    (f"FORMAT_TIMESTAMP({MOMENT}, '''\"''yyyy', 'Europe/London')", '"2018'),
    (f"FORMAT_TIMESTAMP({MOMENT}, '''\"''z', 'Europe/London')", '"BST'),
    ("FORMAT_TIMESTAMP(TIMESTAMP '2018-11-04T08:30:00', 'HH:mm z', 'America/Los_Angeles')", "01:30 PDT"),
    ("FORMAT_TIMESTAMP(TIMESTAMP '2018-11-04T09:30:00', 'HH:mm z', 'America/Los_Angeles')", "01:30 PST"),
    ("TIMESTAMPTOSTRING(1526075913000, 'yyyy-MM-dd HH:mm:ss zzz', 'America/Los_Angeles')", "2018-05-11 14:58:33 PDT"),
    ("TIMESTAMPTOSTRING(-1, 'yyyy-MM-dd HH:mm:ss.SSS')", "1969-12-31 23:59:59.999"),
    ("TIMESTAMPTOSTRING(9223372036854775807, 'yyyy')", None),
    ("TIMESTAMPTOSTRING(CAST(NULL AS BIGINT), 'yyyy')", None),
]

VALUES: list[tuple[str, Any]] = [
    ("PARSE_DATE('2018-05-11Lit', 'yyyy-MM-dd''Lit''')", date(2018, 5, 11)),
    ("PARSE_DATE('01-JAN-2022', 'dd-MMM-yyyy')", date(2022, 1, 1)),
    (f"PARSE_DATE('JAN-2022', {later('MMM-yyyy')})", date(2022, 1, 1)),
    ("PARSE_DATE('2022-02-30', 'yyyy-MM-dd')", None),
    ("PARSE_DATE('Mon 2022-01-03', 'EEE yyyy-MM-dd')", date(2022, 1, 3)),
    ("PARSE_DATE('2022-01-03, monday', 'uuuu-MM-dd, EEEE')", date(2022, 1, 3)),
    ("PARSE_DATE('Tue 2022-01-03', 'EEE yyyy-MM-dd')", None),
    ("PARSE_DATE(' 2022-01-03', 'EEE yyyy-MM-dd')", None),
    ("PARSE_DATE('Mon E 2022-01-03', 'E ''E'' yyyy-MM-dd')", date(2022, 1, 3)),
    (f"PARSE_DATE({NULL}, 'EEE yyyy')", None),
    ("PARSE_TIMESTAMP('Mon, 3 Jan 2022 01:02:03 +0300', 'EEE, d MMM yyyy HH:mm:ss Z')",
     datetime(2022, 1, 2, 22, 2, 3)),
    ("PARSE_TIMESTAMP('Mon 2022-01-03 01', 'EEE yyyy-MM-dd HH', '+0300')", datetime(2022, 1, 2, 22)),
    ("PARSE_DATE('2022-02-28 10', 'yyyy-MM-dd HH')", None),
    ("PARSE_DATE('nonsense', 'yyyy')", None),
    ("PARSE_DATE('1900-02-28', 'yyyy-MM-dd')", date(1900, 2, 28)),
    (f"PARSE_DATE({NULL}, 'yyyy')", None),
    ("STRINGTODATE('11/05/2019', 'dd/MM/yyyy')", 18027),
    ("STRINGTODATE('1969-12-31', 'yyyy-MM-dd')", -1),
    ("STRINGTODATE('x', 'yyyy-MM-dd')", None),
    ("PARSE_TIME('00:01:05Lit', 'HH:mm:ss''Lit''')", 65000),
    ("PARSE_TIME('01:00:00 Pm', 'hh:mm:ss a')", 46800000),
    (f"PARSE_TIME('11/05/19', {later('HH/mm/ss')})", 39919000),
    ("PARSE_TIME('2022 11', 'yyyy HH')", None),
    (f"PARSE_TIME('2022 11', {later('yyyy HH')})", None),
    ("PARSE_TIME('11', 'mm')", None),
    (f"PARSE_TIME('11', {later('mm')})", None),
    ("PARSE_TIME('25:00', 'HH:mm')", None),
    ("PARSE_TIMESTAMP('2018-05-11T21:58:33', 'yyyy-MM-dd''T''HH:mm:ss')", datetime(2018, 5, 11, 21, 58, 33)),
    ("PARSE_TIMESTAMP('2018-05-11', 'yyyy-MM-dd', '+0200')", datetime(2018, 5, 10, 22)),
    (f"PARSE_TIMESTAMP('2018-05-11', {later('yyyy-MM-dd')}, {later('+0200')})", datetime(2018, 5, 10, 22)),
    ("PARSE_TIMESTAMP('2018-05-11 +03:00', 'yyyy-MM-dd XXX', '+0200')", datetime(2018, 5, 10, 21)),
    (f"PARSE_TIMESTAMP('2018-05-11 +03:00', {later('yyyy-MM-dd XXX')}, '+0200')", datetime(2018, 5, 10, 21)),
    ("PARSE_TIMESTAMP('2018-05-11', 'yyyy-MM-dd', 'Nowhere')", None),
    ("PARSE_TIMESTAMP('2018-05-11', 'qqqq')", None),
    ("STRINGTOTIMESTAMP('2019-08-27T13:31:09.2+0000', 'yyyy-MM-dd''T''HH:mm:ss.SX')", 1566912669200),
    ("STRINGTOTIMESTAMP('1969-12-31 23:59:59.999', 'yyyy-MM-dd HH:mm:ss.SSS')", -1),
    ("STRINGTOTIMESTAMP('x', 'yyyy')", None),
    (f"STRINGTOTIMESTAMP({NULL}, 'yyyy', 'UTC')", None),
]  # fmt: skip

ARITHMETIC: list[tuple[str, Any]] = [
    ("DATEADD(DAYS, 10, DATE '1970-02-10')", date(1970, 2, 20)),
    ("DATEADD(HOURS, 23, DATE '1970-02-10')", date(1970, 2, 10)),
    ("DATESUB(HOURS, 1, DATE '1970-01-01')", date(1970, 1, 1)),
    ("DATESUB(DAYS, 10, DATE '1970-01-06')", date(1969, 12, 27)),
    ("DATEADD(DAYS, 2147483647, DATE '2000-01-01')", None),
    ("DATEADD(DAYS, NULL, DATE '2000-01-01')", None),
    ("DATEADD(DAYS, 1, '2000-01-01')", date(2000, 1, 2)),
    ("TIMEADD(HOURS, 25, TIME '23:00')", 0),
    ("TIMEADD(MILLISECONDS, 10, CAST(NULL AS TIME))", None),
    ("TIMESUB(MILLISECONDS, 1, TIME '00:00')", 86_399_999),
    ("TIMESUB(DAYS, 2147483647, TIME '01:00')", 3_600_000),
    (f"TIMESTAMPADD(MILLISECONDS, 10, {MOMENT})", datetime(2018, 5, 11, 21, 58, 33, 133000)),
    (f"TIMESTAMPSUB(DAYS, 2147483647, {MOMENT})", None),
    ("TIMESTAMPADD(DAYS, 1, CAST(NULL AS TIMESTAMP))", None),
    ("CONVERT_TZ(FROM_UNIXTIME(100), '+0200', '+0500')", datetime(1970, 1, 1, 3, 0, 0, 100000)),
    ("CONVERT_TZ(FROM_UNIXTIME(1589234313000), 'America/Los_Angeles', 'America/New_York')",
     datetime(2020, 5, 12, 0, 58, 33)),
    ("CONVERT_TZ(FROM_UNIXTIME(0), 'Nowhere', 'UTC')", None),
    ("CONVERT_TZ(CAST(NULL AS TIMESTAMP), 'UTC', 'UTC')", None),
    ("CONVERT_TZ(FROM_UNIXTIME(0), NULL, 'UTC')", None),
    ("FROM_DAYS(-1)", date(1969, 12, 31)),
    ("FROM_DAYS(2147483647)", None),
    ("UNIX_DATE(DATE '1969-12-31')", -1),
    ("UNIX_DATE() > 19000", True),
    ("FROM_UNIXTIME(-1)", datetime(1969, 12, 31, 23, 59, 59, 999000)),
    ("FROM_UNIXTIME(9223372036854775807)", None),
    ("UNIX_TIMESTAMP(FROM_UNIXTIME(-1))", -1),
    ("UNIX_TIMESTAMP(CAST(NULL AS TIMESTAMP))", None),
    ("UNIX_TIMESTAMP() > 1700000000000", True),
]  # fmt: skip


def test_moments(spark: SparkSession) -> None:
    wrong = unequal(spark, [*TEXTS, *VALUES, *ARITHMETIC])
    assert not wrong, "\n".join(wrong)


def test_a_month_has_no_fixed_length() -> None:
    with pytest.raises(TypeMismatch, match="MONTHS is not a unit of fixed length"):
        render(parse_expression("DATEADD(MONTHS, 1, DATE '2024-01-01')"), Scope(()), Dialect.SPARK)
