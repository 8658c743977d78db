"""TIMESTAMP_FORMAT: which java.time patterns are supported."""

from holdfast.errors import BindError, Feature, NotYetSupported, Position
from holdfast.runtime.functions.patterns import DATE_LETTERS, TIME_LETTERS

_RESERVED = "{}#"
_PADDING = "p"
_NOT_PARSED = "ABEFNQWYcenpqw"
"""Letters that Spark cannot parse: weeks, quarters, days of the week, and counts of milli- and nanoseconds."""


def check_timestamp_format(pattern: str, position: Position | None) -> None:
    """Refuse a pattern that is invalid or that Spark cannot parse."""
    bare = "".join(pattern.split("'")[::2])
    letters = {c for c in bare if c.isascii() and c.isalpha()}
    unknown = sorted(letters - {*DATE_LETTERS, *TIME_LETTERS, _PADDING}) + [c for c in _RESERVED if c in bare]
    if unknown or pattern.count("'") % 2 or not _brackets_match(bare):
        letters_text = f"Unknown letters: {' '.join(unknown)}."
        raise BindError(
            f"'{pattern}' is not a valid timestamp pattern",
            detail=letters_text if unknown else "A quote or a bracket is not closed.",
            hint="Write it as 'yyyy-MM-dd HH:mm:ssX', with other letters in quotes: 'yyyy-MM-dd''T''HH:mm'.",
            position=position,
        )
    for letter in sorted(letters & set(_NOT_PARSED)):
        raise NotYetSupported(
            Feature.PROPERTY,
            f"TIMESTAMP_FORMAT with {letter}",
            f"the letter {letter} in TIMESTAMP_FORMAT is not supported yet",
            hint="Leave out TIMESTAMP, and parse the supported part of the STRING with PARSE_TIMESTAMP in a query.",
            position=position,
        )


def _brackets_match(bare: str) -> bool:
    depth = 0
    for c in bare:
        depth += (c == "[") - (c == "]")
        if depth < 0:
            return False
    return True
