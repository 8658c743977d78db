"""Functions in Java that decode records on Spark, a row per call; generated code calls them directly.

Spark finds them through a function catalog. The SQL of a call contains the specification of the function in its name,
because Spark asks for a function's result type before it knows any argument.
"""

CATALOG = "holdfast"
"""The name of the catalog in Spark's configuration."""


def call_sql(function: str, specification: str, argument: str) -> str:
    """The SQL that calls a function with a specification."""
    name = f"{function} {specification}".replace("`", "``")
    return f"{CATALOG}.`{name}`({argument})"
