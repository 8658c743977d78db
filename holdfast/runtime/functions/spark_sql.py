"""Spark SQL texts shared by several functions.

Names inside lambdas end in an underscore, unlike columns and the parameters of users' lambdas.
"""

from collections.abc import Callable

from holdfast.runtime.expressions.physical import Dialect, string_literal


def text(constant: str) -> str:
    """A string constant."""
    return string_literal(constant, Dialect.SPARK)


def let(value: str, body: Callable[[str], str], name: str = "it_") -> str:
    """The text of `body` over a value that is computed only once."""
    if value.isidentifier():
        return body(value)
    return f"get(transform(array({value}), {name} -> {body(name)}), 0)"


# Spark has no TRY, but some of its functions catch whatever their arguments raise.


def attempt_text(sql: str) -> str:
    """A STRING, NULL where computing it fails."""
    return f"CAST(try_to_binary({sql}, 'utf-8') AS STRING)"


def attempt_moment(sql: str) -> str:
    """A timestamp, NULL where computing it fails."""
    return f"try_add({sql}, INTERVAL '0' SECOND)"


def literal_pattern(sql: str) -> str:
    """A regular expression that matches a string literally."""
    escaped = f"replace({sql}, {text(chr(92) + 'E')}, {text(chr(92) + 'E' + chr(92) * 2 + 'E' + chr(92) + 'Q')})"
    return f"concat({text(chr(92) + 'Q')}, {escaped}, {text(chr(92) + 'E')})"


def latin(sql: str) -> str:
    """Bytes as a string with one character per byte."""
    return f"decode({sql}, 'ISO-8859-1')"


def unlatin(sql: str) -> str:
    return f"encode({sql}, 'ISO-8859-1')"
