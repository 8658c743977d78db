"""Topic records to typed columns, as one Spark SQL text per source.

A decoder reads the view of raw records (`part, off, ts, key, value, headers`) and gives `k0..` key columns,
`c0..` value columns, `ts`, `part`, `off`, and `bad`:

    0  decoded     1  cannot be decoded     2  has a JSON name in a spelling that the decoder does not know yet

A row with `bad` > 0 has only nulls in its columns and rides along to the end of a query's SQL, so that finding
bad records costs no second pass. `tombstone` is true where the value was null.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.plan.formats import FormatInfo, Formats, SerdeFeature
from holdfast.runtime.plan.presence import given
from holdfast.runtime.serdes import json, kafka
from holdfast.types import Column, Schema

GOOD, UNDECODABLE, UNKNOWN_SPELLING = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Side:
    """The decoding of a key or of a value, in the levels of the decoder's query.

    `parsed` is computed once per record; `texts` are over it; `typed` are over the texts, and `wrong` tells where those
    are not of their types; `corrupt` and `misspelled` are conditions over parsed and texts.
    """

    parsed: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str], ...]
    typed: tuple[str, ...]
    corrupt: str
    misspelled: str | None = None
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decoder:
    """How the records of a topic become rows of `schema`. With `keyed`, a record without a key is bad."""

    schema: Schema
    formats: Formats
    keyed: bool = False

    def sql(self, view: str, spellings: frozenset[str]) -> str:
        """The SELECT that decodes the records of a view; `spellings` are JSON names seen so far."""
        key = side(
            self.schema.key, self.formats.key_format, unwrapped=_key_unwrapped(self), prefix="k", names=spellings
        )
        value = side(
            self.schema.value, self.formats.value_format, unwrapped=_value_unwrapped(self), prefix="c", names=spellings
        )
        parsed = "".join(f", {sql} AS {name}" for name, sql in (*key.parsed, *value.parsed))
        level = f"SELECT part, off, ts, key, value{parsed} FROM {view}"
        texts = "".join(f", {sql} AS {name}" for name, sql in (*key.texts, *value.texts))
        kept = "".join(f", {name}" for name, _ in (*key.parsed, *value.parsed))
        level = f"SELECT part, off, ts, key, value{kept}{texts} FROM ({level})"
        typed = [f"{sql} AS k{i}" for i, sql in enumerate(key.typed)]
        typed += [f"{sql} AS c{i}" for i, sql in enumerate(value.typed)]
        texts = "".join(f", {name}" for name, _ in (*key.texts, *value.texts))
        level = f"SELECT part, off, ts, key, value{kept}{texts}, {', '.join(typed) or 'NULL AS none'} FROM ({level})"
        bad = _bad(key, value, self)
        names = [f"k{i}" for i in range(len(self.schema.key))] + [f"c{i}" for i in range(len(self.schema.value))]
        level = f"SELECT part, off, ts, value IS NULL AS tombstone, {bad} AS bad{_list(names)} FROM ({level})"
        nulled = [f"IF(bad = 0, {name}, NULL) AS {name}" for name in names]
        return f"SELECT part, off, ts, tombstone, bad{_list(nulled)} FROM ({level})"

    def check(self) -> None:
        """Refuse columns and formats that cannot be decoded, before any record comes."""
        for column in self.schema.headers:
            raise NotYetSupported(Feature.COLUMN, "HEADERS", f'the HEADERS column "{column.name}" cannot be read yet')
        self.sql("records", frozenset())

    def spellings_sql(self, view: str) -> str:
        """The SELECT of all top-level JSON names in a view's values and keys."""
        sources = []
        if _is_json(self.formats.value_format) and not _value_unwrapped(self):
            sources.append(json.names_sql("value", self.schema.value, view))
        if _is_json(self.formats.key_format) and not _key_unwrapped(self):
            sources.append(json.names_sql("key", self.schema.key, view))
        return " UNION ".join(sources)

    def reason_sql(self, view: str, spellings: frozenset[str], limit: int) -> str:
        """The SELECT of the records that cannot be decoded: coordinates, raw bytes and how many there are."""
        decoded = f"SELECT part AS p, off AS o, bad FROM ({self.sql(view, spellings)}) WHERE bad = {UNDECODABLE}"
        return (
            f"SELECT part, off, ts, key, value, count(*) OVER () AS total FROM {view} "
            f"JOIN ({decoded}) ON part = p AND off = o ORDER BY part, off LIMIT {limit}"
        )


def side(columns: Sequence[Column], info: FormatInfo, *, unwrapped: bool, prefix: str, names: frozenset[str]) -> Side:
    """The decoding of one side in its format."""
    raw = "key" if prefix == "k" else "value"
    match info.format:
        case "KAFKA":
            return _kafka(columns, raw)
        case "JSON":
            return _json(columns, raw, unwrapped=unwrapped, prefix=prefix, names=names)
        case "NONE":
            return Side((), (), tuple("NULL" for _ in columns), "false")
        case other:
            raise NotYetSupported(Feature.FORMAT, other, hint="Use JSON, KAFKA or NONE.")


def _kafka(columns: Sequence[Column], raw: str) -> Side:
    if not columns:
        return Side((), (), (), "false")
    kafka.check(columns)
    column = columns[0]
    return Side((), (), (kafka.decode_sql(raw, column.type),), kafka.corrupt_sql(raw, column.type))


def _json(columns: Sequence[Column], raw: str, *, unwrapped: bool, prefix: str, names: frozenset[str]) -> Side:
    if not columns:
        return Side((), (), (), "false")
    for column in columns:
        json.check(column.type)
    parsed, texts = f"{prefix}j", [f"{prefix}t{i}" for i in range(len(columns))]
    spelled = [[json.UNWRAPPED]] if unwrapped else json.spellings([c.name for c in columns], names)
    typed = list(zip(texts, (column.type for column in columns), strict=True))
    fields = [name for column in columns for name in json.field_names(column.type)]
    known = {*names, *chain(*spelled), *chain(*json.spellings(fields, names))}
    return Side(
        parsed=((parsed, json.parse_sql(raw, spelled, columns, names, unwrapped=unwrapped)),),
        texts=tuple((text, json.text_sql(parsed, found)) for text, found in zip(texts, spelled, strict=True)),
        typed=tuple(json.value_sql(text, type_, names) for text, type_ in typed),
        corrupt=json.corrupt_sql(raw, parsed),
        misspelled=None if unwrapped and not fields else json.misspelled_sql(raw, texts, columns, known),
        wrong=tuple(sql for text, type_ in typed if (sql := json.wrong_sql(text, type_, names))),
    )


def _bad(key: Side, value: Side, decoder: Decoder) -> str:
    schema = decoder.schema
    failed = [f"(key IS NOT NULL AND ({key.corrupt}))", f"(value IS NOT NULL AND ({value.corrupt}))"]
    failed += [f"({sql})" for decoded in (key, value) for sql in decoded.wrong]
    if decoder.keyed:
        failed.append("(" + " AND ".join(f"k{i} IS NULL" for i in range(len(schema.key))) + ")")
    misspelled = [side.misspelled for side in (key, value) if side.misspelled]
    unknown = f" WHEN {' OR '.join(misspelled)} THEN {UNKNOWN_SPELLING}" if misspelled else ""
    return f"CASE{unknown} WHEN {' OR '.join(failed)} THEN {UNDECODABLE} ELSE {GOOD} END"


def _list(names: Sequence[str]) -> str:
    return "".join(f", {name}" for name in names)


def _is_json(info: FormatInfo) -> bool:
    return info.format == "JSON"


def _key_unwrapped(decoder: Decoder) -> bool:
    """A JSON key of one column is the bare value unless the plan says otherwise."""
    features = given(decoder.formats.key_features) or ()
    return len(decoder.schema.key) == 1 and SerdeFeature.WRAP_SINGLES not in features


def _value_unwrapped(decoder: Decoder) -> bool:
    return SerdeFeature.UNWRAP_SINGLES in (given(decoder.formats.value_features) or ())
