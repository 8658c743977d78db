"""Scalar values from text, shared by JSON and DELIMITED. Text that is not a value of the type gives NULL."""

from holdfast.runtime.expressions.physical import Dialect, string_literal
from holdfast.types import Decimal, Scalar

DATES = (-2_147_483_646, 2_147_483_646)
TIMESTAMPS = (-9_223_372_022_400_000, 9_223_372_036_854_774)
"""The range that the store supports; it uses values beyond as infinities."""
TIMES = (0, 86_400_000)

MAX_PRECISION = 38
SPARE_DIGITS = 6
"""A DECIMAL with at least this many digits to spare is first read with a wider type, to detect rounding."""
NUMBER = "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"


def moment_sql(integer: str, type_: Scalar) -> str:
    """An integer as a TIME, DATE or TIMESTAMP; NULL outside the range of either engine."""
    match type_:
        case Scalar.TIME:
            return f"CAST({within(integer, TIMES)} AS INT)"
        case Scalar.DATE:
            return f"date_add(DATE'1970-01-01', CAST({within(integer, DATES)} AS INT))"
        case _:
            return f"CAST(timestamp_millis({within(integer, TIMESTAMPS)}) AS TIMESTAMP_NTZ)"


def within(number: str, limits: tuple[int, int]) -> str:
    low, high = limits
    return f"IF({number} BETWEEN {low} AND {high}, {number}, NULL)"


def is_wide(type_: Decimal) -> bool:
    """Whether a DECIMAL is too wide to detect rounding with a wider type."""
    return type_.precision > MAX_PRECISION - SPARE_DIGITS


def wider(type_: Decimal) -> str:
    return f"DECIMAL({MAX_PRECISION},{MAX_PRECISION - type_.precision + type_.scale})"


def fitted_sql(wide: str, type_: Decimal) -> str:
    """A DECIMAL from a wider one; NULL if digits would be lost."""
    fitted = f"CAST({wide} AS DECIMAL({type_.precision},{type_.scale}))"
    return f"IF({fitted} = {wide}, {fitted}, NULL)"


def decimal_sql(text: str, type_: Decimal) -> str:
    """A DECIMAL from text; NULL if digits would be lost."""
    number = f"{text} RLIKE {literal(NUMBER)}"
    if not is_wide(type_):
        return f"IF({number}, {fitted_sql(f'CAST({text} AS {wider(type_)})', type_)}, NULL)"
    fraction = f"length(regexp_extract({text}, {literal('[.]([0-9]*?)0*([eE].*)?$')}, 1))"
    exponent = f"coalesce(CAST(regexp_extract({text}, {literal('[eE]([-+]?[0-9]+)$')}, 1) AS INT), 0)"
    fits = f"{number} AND {fraction} - {exponent} <= {type_.scale}"
    return f"IF({fits}, CAST({text} AS DECIMAL({type_.precision},{type_.scale})), NULL)"


def literal(text: str) -> str:
    return string_literal(text, Dialect.SPARK)
