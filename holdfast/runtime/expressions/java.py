"""Java's arithmetic and string rules as SQL; ksqlDB's results follow them."""

from holdfast.runtime.expressions.physical import Dialect, string_literal

BLANKS = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes."""


def wrap32(text: str) -> str:
    """DuckDB: wrap a BIGINT to an INTEGER, as 32-bit arithmetic does."""
    return f"CAST((({text} + 2147483648) & 4294967295) - 2147483648 AS INTEGER)"


def wrap64(text: str) -> str:
    """DuckDB: wrap a HUGEINT to a BIGINT, as 64-bit arithmetic does."""
    return (
        f"CAST((({text} + 9223372036854775808::HUGEINT) & 18446744073709551615::HUGEINT)"
        " - 9223372036854775808::HUGEINT AS BIGINT)"
    )


def trimmed(text: str, dialect: Dialect) -> str:
    """The text without leading and trailing `BLANKS`."""
    blanks = string_literal(BLANKS, dialect)
    return f"trim(BOTH {blanks} FROM {text})" if dialect is Dialect.SPARK else f"trim({text}, {blanks})"
