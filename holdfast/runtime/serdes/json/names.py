"""How records spell the names of columns and fields.

Spark matches names exactly, so each spelling that a topic uses is a field of what is parsed. Spellings are learnt: a
record that lacks a column, but has its name in a spelling not known, sends its reader to learn.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from json import dumps

from holdfast.runtime.serdes.texts import literal
from holdfast.types import Array, Column, Map, SqlType, Struct


def spellings(names: Sequence[str], seen: frozenset[str]) -> list[list[str]]:
    """For each name those that mean it: itself first, then the other spellings seen and lower case."""
    own = set(names)
    found = []
    taken: set[str] = set()
    for name in names:
        others = sorted({s for s in (*seen, name.lower()) if s.upper() == name} - own - taken)
        taken.update(others)
        found.append([name, *others])
    return found


def field_names(types: Iterable[SqlType]) -> Iterator[str]:
    """The names of all fields of all STRUCTs inside."""
    for type_ in types:
        match type_:
            case Struct(fields):
                yield from (field.name for field in fields)
                yield from field_names(field.type for field in fields)
            case Array(inner) | Map(_, inner):
                yield from field_names([inner])


def found_at_the_top(raw: str, columns: Sequence[Column]) -> str | None:
    """The names in a record's object that spell a column; None where no column has other spellings."""
    wanted = _free(column.name for column in columns)
    if not wanted:
        return None
    names = ", ".join(map(literal, wanted))
    return f"filter(json_object_keys(CAST({raw} AS STRING)), n -> upper(n) IN ({names}))"


def found_inside(raw: str, columns: Sequence[Column]) -> str | None:
    """The names anywhere in a record that spell a field; quotes inside texts are escaped, so texts have none."""
    wanted = _free(field_names(column.type for column in columns))
    if not wanted:
        return None
    either = "|".join(re.escape(dumps(name, ensure_ascii=False)[1:-1]) for name in wanted)
    pattern = rf'"((?iu:{either}))"[ \t\r\n]*:'
    return f"regexp_extract_all(CAST({raw} AS STRING), {literal(pattern)}, 1)"


def has_unknown(found: str, known: Iterable[str]) -> str:
    names = ", ".join(literal(name) for name in sorted(set(known)))
    return f"coalesce(exists({found}, n -> n NOT IN ({names})), false)"


def _free(names: Iterable[str]) -> list[str]:
    """Those that may be spelled in another way."""
    return sorted({name for name in names if name == name.upper() and name != name.lower()})
