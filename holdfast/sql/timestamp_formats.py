"""TIMESTAMP_FORMAT: which patterns of java.time can be read with."""

from holdfast.errors import BindError, Feature, NotYetSupported, Position
from holdfast.runtime.functions.patterns import DATE_LETTERS, TIME_LETTERS

_RESERVED = "{}#"
_PADDING = "p"
_NOT_READ = "ABEFNQWYcenpqw"
"""Letters that Spark does not parse: weeks, quarters, days of a week, and counts of milli- and nanoseconds."""


def check_timestamp_format(pattern: str, position: Position | None) -> None:
    """Refuse a pattern by which no row could be read."""
    bare = "".join(pattern.split("'")[::2])
    letters = {c for c in bare if c.isascii() and c.isalpha()}
    unknown = sorted(letters - {*DATE_LETTERS, *TIME_LETTERS, _PADDING}) + [c for c in _RESERVED if c in bare]
    if unknown or pattern.count("'") % 2 or not _brackets_match(bare):
        nothing = f"This means nothing there: {' '.join(unknown)}."
        raise BindError(
            f"'{pattern}' is not a pattern of times",
            detail=nothing if unknown else "A quote or a bracket stands alone.",
            hint="Write it as 'yyyy-MM-dd HH:mm:ssX', with other letters in quotes: 'yyyy-MM-dd''T''HH:mm'.",
            position=position,
        )
    for letter in sorted(letters & set(_NOT_READ)):
        raise NotYetSupported(
            Feature.PROPERTY,
            f"TIMESTAMP_FORMAT with {letter}",
            f"the letter {letter} in TIMESTAMP_FORMAT is not supported yet",
            hint="Leave it as a STRING, and make the time in a query, with PARSE_TIMESTAMP of a part of it.",
            position=position,
        )


def _brackets_match(bare: str) -> bool:
    depth = 0
    for c in bare:
        depth += (c == "[") - (c == "]")
        if depth < 0:
            return False
    return True
