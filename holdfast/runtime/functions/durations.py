"""Date arithmetic, time zones, and dates and times as numbers."""

from holdfast.errors import TypeMismatch
from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.parameters import UNIT
from holdfast.runtime.functions.patterns import DAY, date_of, milliseconds, moment_of
from holdfast.runtime.functions.spark_sql import attempt_moment
from holdfast.types import Scalar

CATEGORY = "DATE / TIME"
STRING, INTEGER, BIGINT = Scalar.STRING, Scalar.INTEGER, Scalar.BIGINT
DATE, TIME, TIMESTAMP = Scalar.DATE, Scalar.TIME, Scalar.TIMESTAMP

_UNITS = {"MILLISECOND": 1, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": DAY}
# Spark fixes its current time when a query is planned, and a plan runs many times.
_NOW = "CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT)"


def _duration(arguments: Arguments) -> str:
    """The duration of a count of units, in milliseconds."""
    unit = arguments.texts[0].removesuffix("S")
    if unit not in _UNITS:
        raise TypeMismatch(
            f"{arguments.texts[0]} is not a unit of fixed length", hint=f"Units are {', '.join(_UNITS)}."
        )
    return f"(CAST({arguments.texts[1]} AS BIGINT) * {_UNITS[unit]})"


def _date(sign: str) -> Template:
    """Truncates to whole days, toward the epoch."""

    def write(a: Arguments) -> str:
        return date_of(f"((unix_date({a.texts[2]}) * {DAY}L {sign} {_duration(a)}) div {DAY})")

    return write


def _duckdb_date(sign: str) -> Template:
    def write(a: Arguments) -> str:
        days = f"(({a.texts[2]} - DATE '1970-01-01')::BIGINT * {DAY} {sign} {_duration(a)}) // {DAY}"
        in_range = f"{days} BETWEEN -2147483646 AND 2147483646"
        return f"CASE WHEN {in_range} THEN DATE '1970-01-01' + CAST({days} AS INTEGER) END"

    return write


def _time(sign: str) -> Template:
    return lambda a: f"CAST(pmod({a.texts[2]} {sign} {_duration(a)}, {DAY}) AS INT)"


def _duckdb_time(sign: str) -> Template:
    return lambda a: f"CAST((({a.texts[2]} {sign} {_duration(a)}) % {DAY} + {DAY}) % {DAY} AS INTEGER)"


def _moment(sign: str) -> Template:
    return lambda a: moment_of(f"({milliseconds(a.texts[2])} {sign} {_duration(a)})")


def _arithmetic(
    kind: str, type_: Scalar, template: Template, duckdb: Template | None, sign: str, example: Example
) -> ScalarFunction:
    verb, word = ("Adds", "ADD") if sign == "+" else ("Subtracts", "SUB")
    return ScalarFunction(
        name=f"{kind}{word}",
        arguments=("unit", "count", "value"),
        doc=f"{verb} a duration {'to' if sign == '+' else 'from'} a {type_}. Units are MILLISECONDS, SECONDS, MINUTES, "
        "HOURS and DAYS.",
        forms=(ScalarForm(parameters=(UNIT, INTEGER, type_), returns=type_, spark=template, duckdb=duckdb),),
        examples=(example,),
    )


FUNCTIONS = (
    _arithmetic(
        "DATE", DATE, _date("+"), _duckdb_date("+"), "+",
        Example(call="DATEADD(DAYS, 5, DATE '2024-02-27')", gives="DATE '2024-03-03'"),
    ),
    _arithmetic(
        "DATE", DATE, _date("-"), _duckdb_date("-"), "-",
        Example(call="DATESUB(DAYS, 1, DATE '2024-03-01')", gives="DATE '2024-02-29'"),
    ),
    _arithmetic(
        "TIME", TIME, _time("+"), _duckdb_time("+"), "+",
        Example(call="TIMEADD(HOURS, 3, TIME '23:30')", gives="TIME '02:30'"),
    ),
    _arithmetic(
        "TIME", TIME, _time("-"), _duckdb_time("-"), "-",
        Example(call="TIMESUB(SECONDS, 1, TIME '00:00')", gives="TIME '23:59:59'"),
    ),
    _arithmetic(
        "TIMESTAMP", TIMESTAMP, _moment("+"), None, "+",
        Example(
            call="TIMESTAMPADD(MINUTES, 2, TIMESTAMP '2024-02-29T23:59:00')", gives="TIMESTAMP '2024-03-01T00:01:00'"
        ),
    ),
    _arithmetic(
        "TIMESTAMP", TIMESTAMP, _moment("-"), None, "-",
        Example(
            call="TIMESTAMPSUB(MILLISECONDS, 1, TIMESTAMP '1970-01-01T00:00:00')",
            gives="TIMESTAMP '1969-12-31T23:59:59.999'",
        ),
    ),
    ScalarFunction(
        name="CONVERT_TZ",
        arguments=("timestamp", "from", "to"),
        doc="Converts a TIMESTAMP from one time zone to another. NULL if a zone is unknown. In the hours around a "
        "change to or from daylight saving time, the result may differ from ksqlDB's.",
        forms=(
            ScalarForm(
                parameters=(TIMESTAMP, STRING, STRING),
                returns=TIMESTAMP,
                spark=lambda a: (
                    "CAST("
                    + attempt_moment(f"from_utc_timestamp(to_utc_timestamp({a.texts[0]}, {a.texts[1]}), {a.texts[2]})")
                    + " AS TIMESTAMP_NTZ)"
                ),
                duckdb=None,
            ),
        ),
        examples=(
            Example(
                call="CONVERT_TZ(TIMESTAMP '2024-01-01T00:00:00', 'UTC', '+02:00')",
                gives="TIMESTAMP '2024-01-01T02:00:00'",
            ),
        ),
    ),
    ScalarFunction(
        name="FROM_DAYS",
        arguments=("days",),
        doc="Converts days since 1970-01-01 to a DATE.",
        forms=(
            ScalarForm(
                parameters=(INTEGER,),
                returns=DATE,
                spark=lambda a: date_of(a.texts[0]),
                duckdb="CASE WHEN {0} BETWEEN -2147483646 AND 2147483646 THEN DATE '1970-01-01' + {0} END",
            ),
        ),
        examples=(Example(call="FROM_DAYS(365)", gives="DATE '1971-01-01'"),),
    ),
    ScalarFunction(
        name="UNIX_DATE",
        arguments=("date",),
        doc="Returns the days since 1970-01-01 of a DATE, or of the current date in UTC.",
        forms=(
            ScalarForm(
                parameters=(), returns=INTEGER, spark=f"CAST({_NOW} div {DAY} AS INT)", duckdb=None
            ),
            ScalarForm(
                parameters=(DATE,),
                returns=INTEGER,
                spark="unix_date({0})",
                duckdb="CAST({0} - DATE '1970-01-01' AS INTEGER)",
            ),
        ),
        examples=(Example(call="UNIX_DATE(DATE '1971-01-01')", gives="365"),),
    ),
    ScalarFunction(
        name="FROM_UNIXTIME",
        arguments=("milliseconds",),
        doc="Converts milliseconds since the epoch to a TIMESTAMP.",
        forms=(
            ScalarForm(
                parameters=(BIGINT,), returns=TIMESTAMP, spark=lambda a: moment_of(a.texts[0]), duckdb=None
            ),
        ),
        examples=(Example(call="FROM_UNIXTIME(1526075913000)", gives="TIMESTAMP '2018-05-11T21:58:33'"),),
    ),
    ScalarFunction(
        name="UNIX_TIMESTAMP",
        arguments=("timestamp",),
        doc="Returns the milliseconds since the epoch of a TIMESTAMP, or of the current time.",
        forms=(
            ScalarForm(parameters=(), returns=BIGINT, spark=_NOW, duckdb=None),
            ScalarForm(
                parameters=(TIMESTAMP,),
                returns=BIGINT,
                spark=lambda a: milliseconds(a.texts[0]),
                duckdb="epoch_ms({0})",
            ),
        ),
        examples=(Example(call="UNIX_TIMESTAMP(TIMESTAMP '2018-05-11T21:58:33')", gives="1526075913000"),),
    ),
)  # fmt: skip
