"""Geographic functions."""

from holdfast.runtime.expressions.java import trimmed
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction
from holdfast.runtime.functions.spark_sql import let
from holdfast.types import Scalar

CATEGORY = "OTHER"
DOUBLE = Scalar.DOUBLE

_KILOMETRES, _MILES = "6371D", "3959D"


def _radius(unit: str) -> str:
    """The earth's radius; NULL for an unknown unit."""
    bare = f"lower({trimmed(unit, Dialect.SPARK)})"
    return let(
        bare,
        lambda u: (
            f"CASE WHEN COALESCE({u}, '') IN ('', 'km', 'kilometer', 'kilometers', 'kilometre', 'kilometres')"
            f" THEN {_KILOMETRES} WHEN {u} IN ('mi', 'mile', 'miles') THEN {_MILES} END"
        ),
        "unit_",
    )


def _distance(arguments: Arguments) -> str:
    """The haversine formula."""
    lat1, lon1, lat2, lon2, *unit = arguments.texts
    radius = _radius(unit[0]) if unit else _KILOMETRES

    def half(a: str, b: str) -> str:
        return f"pow(sin(radians({b} - {a}) / 2), 2)"

    root = f"sqrt({half(lat1, lat2)} + {half(lon1, lon2)} * cos(radians({lat1})) * cos(radians({lat2})))"
    in_range = " AND ".join(
        f"{degrees} BETWEEN -{limit} AND {limit}"
        for degrees, limit in ((lat1, 90), (lat2, 90), (lon1, 180), (lon2, 180))
    )
    return f"CASE WHEN {in_range} THEN 2 * asin({root}) * {radius} END"


FUNCTIONS = (
    ScalarFunction(
        name="GEO_DISTANCE",
        arguments=("latitude 1", "longitude 1", "latitude 2", "longitude 2", "unit"),
        doc="Returns the great-circle distance between two points on the earth, in kilometers or, with the unit "
        "MILES, in miles. Coordinates are in degrees; NULL if a latitude is outside -90 to 90 or a "
        "longitude outside -180 to 180.",
        forms=tuple(
            ScalarForm(parameters=(*(DOUBLE,) * 4, *unit), returns=DOUBLE, spark=_distance, duckdb=None)
            for unit in ((), (Scalar.STRING,))
        ),
        examples=(
            Example(
                call="ROUND(GEO_DISTANCE(37.4439, -122.1663, 51.5257, -0.1122), 3)", gives="CAST(8634.660 AS DOUBLE)"
            ),
        ),
    ),
)
