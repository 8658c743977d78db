"""How records spell the names of columns and fields.

Spark matches names exactly, so each spelling that a topic uses is a field of the parsed struct. Spellings are learned
from the records: one that misses a column, but has its name in an unknown spelling, makes its reader learn and retry.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from json import dumps

from holdfast.runtime.serdes.scalar_text import literal
from holdfast.types import Array, Column, Map, SqlType, Struct


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


def field_names(types: Iterable[SqlType]) -> Iterator[str]:
    """The names of all fields of all STRUCTs in the types."""
    for type_ in types:
        match type_:
            case Struct(fields):
                yield from (field.name for field in fields)
                yield from field_names(field.type for field in fields)
            case Array(inner) | Map(_, inner):
                yield from field_names([inner])


def top_level_names(raw: str, columns: Sequence[Column]) -> str | None:
    """The top-level names of a record that spell a column; None if all columns match exactly."""
    wanted = _case_insensitive(column.name for column in columns)
    if not wanted:
        return None
    names = ", ".join(map(literal, wanted))
    return f"filter(json_object_keys(CAST({raw} AS STRING)), n -> upper(n) IN ({names}))"


def nested_names(raw: str, columns: Sequence[Column]) -> str | None:
    """The names anywhere in a record that spell a field. String values never match: quotes in them are escaped."""
    wanted = _case_insensitive(field_names(column.type for column in columns))
    if not wanted:
        return None
    either = "|".join(re.escape(dumps(name, ensure_ascii=False)[1:-1]) for name in wanted)
    pattern = rf'"((?iu:{either}))"[ \t\r\n]*:'
    return f"regexp_extract_all(CAST({raw} AS STRING), {literal(pattern)}, 1)"


def has_unknown(found: str, known: Iterable[str]) -> str:
    names = ", ".join(literal(name) for name in sorted(set(known)))
    return f"coalesce(exists({found}, n -> n NOT IN ({names})), false)"


def _case_insensitive(names: Iterable[str]) -> list[str]:
    """The names that match in any case."""
    return sorted({name for name in names if name == name.upper() and name != name.lower()})
