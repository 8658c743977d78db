"""Functions in Java that decode records on Spark, a row per call; generated code calls them directly.

Spark finds them through a function catalog. Where the result type of a function depends on a specification, the SQL of
a call has that in the function's name: Spark asks for the result type before it knows any argument.
"""

CATALOG = "holdfast"
"""The name of the catalog in Spark's configuration."""


def number_sql(kind: str, raw: str, from_end: int) -> str:
    """The SQL of the big-endian number that starts some bytes before the end; `kind` is int, long or double."""
    return f"{CATALOG}.{kind}_at({raw}, {from_end})"


def call_sql(function: str, specification: str, argument: str) -> str:
    """The SQL that calls a function with a specification."""
    name = f"{function} {specification}".replace("`", "``")
    return f"{CATALOG}.`{name}`({argument})"
