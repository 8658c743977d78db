"""The scalar values of texts: what JSON and DELIMITED have in common. A text that is no value of its type is NULL."""

from holdfast.runtime.expressions.physical import Dialect, string_literal
from holdfast.types import Decimal, Scalar

DATES = (-2_147_483_646, 2_147_483_646)
TIMESTAMPS = (-9_223_372_022_400_000, 9_223_372_036_854_774)
"""What the store can hold; the next ones are its infinities."""
TIMES = (0, 86_400_000)

DIGITS = 38
SPARE = 6
"""A DECIMAL with so many digits to spare can be read wider than it is, to see whether it would have to be rounded."""
NUMBER = "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"


def moment_sql(whole: str, type_: Scalar) -> str:
    """A TIME, DATE or TIMESTAMP of a whole number; NULL beyond what both engines can count."""
    match type_:
        case Scalar.TIME:
            return f"CAST({within(whole, TIMES)} AS INT)"
        case Scalar.DATE:
            return f"date_add(DATE'1970-01-01', CAST({within(whole, DATES)} AS INT))"
        case _:
            return f"CAST(timestamp_millis({within(whole, TIMESTAMPS)}) AS TIMESTAMP_NTZ)"


def within(number: str, limits: tuple[int, int]) -> str:
    least, greatest = limits
    return f"IF({number} BETWEEN {least} AND {greatest}, {number}, NULL)"


def is_wide(type_: Decimal) -> bool:
    """Whether there is no room to see a rounding by reading it wider."""
    return type_.precision > DIGITS - SPARE


def wider(type_: Decimal) -> str:
    return f"DECIMAL({DIGITS},{DIGITS - type_.precision + type_.scale})"


def fitted_sql(wide: str, type_: Decimal) -> str:
    """A DECIMAL from a wider one; NULL where digits would be lost."""
    fitted = f"CAST({wide} AS DECIMAL({type_.precision},{type_.scale}))"
    return f"IF({fitted} = {wide}, {fitted}, NULL)"


def decimal_sql(text: str, type_: Decimal) -> str:
    """A DECIMAL of a text; NULL where digits would be lost."""
    number = f"{text} RLIKE {literal(NUMBER)}"
    if not is_wide(type_):
        return f"IF({number}, {fitted_sql(f'CAST({text} AS {wider(type_)})', type_)}, NULL)"
    fraction = f"length(regexp_extract({text}, {literal('[.]([0-9]*?)0*([eE].*)?$')}, 1))"
    exponent = f"coalesce(CAST(regexp_extract({text}, {literal('[eE]([-+]?[0-9]+)$')}, 1) AS INT), 0)"
    fits = f"{number} AND {fraction} - {exponent} <= {type_.scale}"
    return f"IF({fits}, CAST({text} AS DECIMAL({type_.precision},{type_.scale})), NULL)"


def literal(text: str) -> str:
    return string_literal(text, Dialect.SPARK)
