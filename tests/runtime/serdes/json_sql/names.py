"""How records spell the names of columns and fields.

Spark matches names exactly, so each spelling that the records use is a field of the parsed struct.
"""

from collections.abc import Sequence


def spellings(names: Sequence[str], seen: frozenset[str]) -> list[list[str]]:
    """The spellings of each name: itself first, then lower case and the spellings seen."""
    exact = set(names)
    found = []
    taken: set[str] = set()
    for name in names:
        others = sorted({s for s in (*seen, name.lower()) if s.upper() == name} - exact - taken)
        taken.update(others)
        found.append([name, *others])
    return found
