"""Topic records to typed columns, as one Spark SQL text per source.

A decoder reads the view of raw records (`part, off, ts, key, value, hdr`) and gives `k0..` key columns, `c0..` value
columns, those of headers behind the others, `ts`, `part`, `off`, `hdr`, and `bad`:

    0  decoded     1  cannot be decoded     2  has a JSON name in a spelling that the decoder does not know yet

A row with `bad` > 0 has only nulls in its columns and rides along to the end of a query's SQL, so that finding
bad records costs no second pass. `tombstone` is true where there was no value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.plan.formats import FormatInfo, Formats
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.serdes import kafka
from holdfast.runtime.serdes.delimited import reading as delimited
from holdfast.runtime.serdes.json import reading as json
from holdfast.runtime.serdes.side import Failure, Side, nulls
from holdfast.runtime.serdes.texts import literal
from holdfast.runtime.serdes.window import WindowedKey
from holdfast.runtime.serdes.wrapping import key_is_bare, value_is_bare
from holdfast.types import Column, Schema

GOOD, UNDECODABLE, UNKNOWN_SPELLING = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Decoder:
    """How the records of a topic become rows of `schema`. With `keyed`, a record without a key is bad.

    With `window`, the key's bytes end with a window, whose start and end are the last two of `k0..`.
    """

    schema: Schema
    formats: Formats
    keyed: bool = False
    window: WindowInfo | None = None

    def sql(self, view: str, spellings: frozenset[str]) -> str:
        """The SELECT that decodes the records of a view; `spellings` are JSON names seen so far."""
        key, value = self._sides(spellings)
        level, names = self._typed(view, key, value)
        bad = self._bad(key, value)
        level = f"SELECT part, off, ts, hdr, {value.absent} AS tombstone, {bad} AS bad{_list(names)} FROM ({level})"
        nulled = _named((name, f"IF(bad = 0, {name}, NULL)") for name in names)
        return f"SELECT part, off, ts, tombstone, bad, hdr{nulled} FROM ({level})"

    def _typed(self, view: str, key: Side, value: Side) -> tuple[str, list[str]]:
        """The SELECT of all that is made of a record on the way to its columns, and the names of these."""
        view, bounds = self._unwindowed(view)
        parsed = _named((*key.parsed, *value.parsed))
        level = f"SELECT part, off, ts, key, value, hdr{_list(bounds)}{parsed} FROM {view}"
        kept = _list([*bounds, *(name for name, _ in (*key.parsed, *value.parsed))])
        texts = _named((*key.texts, *value.texts))
        level = f"SELECT part, off, ts, key, value, hdr{kept}{texts} FROM ({level})"
        kept += _list(name for name, _ in (*key.texts, *value.texts))
        names = [f"k{i}" for i in range(len(self.schema.key))] + [f"c{i}" for i in range(len(self.schema.row))]
        headers = map(_header, self.schema.headers)
        windows = [f"k{len(self.schema.key) + i}" for i in range(len(bounds[:2]))]
        typed = _named(zip(names, (*key.typed, *value.typed, *headers), strict=True))
        typed += _named(zip(windows, bounds[:2], strict=True))
        level = f"SELECT part, off, ts, key, value, hdr{kept}{typed} FROM ({level})"
        return level, names + windows

    def check(self) -> None:
        """Refuse columns and formats that cannot be decoded, before any record comes."""
        self.sql("records", frozenset())

    def spellings_sql(self, view: str) -> str:
        """The SELECT of the JSON names in a view's records that spell a name of the schema."""
        sources = []
        if self.formats.value_format.format == "JSON":
            sources += json.names_sql(self.schema.value, "value", view, unwrapped=value_is_bare(self.formats))
        if self.formats.key_format.format == "JSON":
            bare = key_is_bare(self.schema.key, self.formats)
            sources += json.names_sql(self.schema.key, "key", self._unwindowed(view)[0], unwrapped=bare)
        return " UNION ".join(sources)

    def reason_sql(self, view: str, spellings: frozenset[str], limit: int) -> str:
        """The SELECT of the records that cannot be decoded: coordinates, raw bytes, the reason, how many there are."""
        key, value = self._sides(spellings)
        level, _ = self._typed(view, key, value)
        bad = f"SELECT * FROM (SELECT *, {self._bad(key, value)} AS bad FROM ({level})) WHERE bad = {UNDECODABLE}"
        told = f"SELECT part AS p, off AS o, {self._reason(key, value)} AS reason FROM ({bad})"
        return (
            f"SELECT part, off, ts, key, value, reason, count(*) OVER () AS total FROM {view} "
            f"JOIN ({told}) ON part = p AND off = o ORDER BY part, off LIMIT {limit}"
        )

    def _sides(self, seen: frozenset[str]) -> tuple[Side, Side]:
        schema, formats = self.schema, self.formats
        bare = key_is_bare(schema.key, formats)
        return (
            side(schema.key, formats.key_format, unwrapped=bare, prefix="k", seen=seen),
            side(schema.value, formats.value_format, unwrapped=value_is_bare(formats), prefix="c", seen=seen),
        )

    def _unwindowed(self, view: str) -> tuple[str, list[str]]:
        """The records with the key alone as `key`, and the names of what is taken off it."""
        if self.window is None:
            return view, []
        key, names = WindowedKey(self.window), ["w_start", "w_end", "w_corrupt"]
        taken = _named(zip(names, (*key.bounds("key"), f"coalesce({key.corrupt('key')}, false)"), strict=True))
        return f"(SELECT part, off, ts, {key.inner('key')} AS key, value, hdr{taken} FROM {view})", names

    def _reason(self, key: Side, value: Side) -> str:
        """Why a record cannot be decoded: the first reason of several."""
        failures = [Failure("w_corrupt", literal("the key is too short to end with a window"))] if self.window else []
        failures += [Failure(f"NOT {s.absent} AND {f.when}", f.why) for s in (key, value) for f in s.failed]
        if self.keyed:
            failures.append(Failure(self._keyless, literal("the record has no key, which a row of a table needs")))
        whens = " ".join(f"WHEN {failure.when} THEN {failure.why}" for failure in failures)
        return f"CASE {whens} END"

    @property
    def _keyless(self) -> str:
        return "(" + " AND ".join(f"k{i} IS NULL" for i in range(len(self.schema.key))) + ")"

    def _bad(self, key: Side, value: Side) -> str:
        sides = [(side.absent, [failure.when for failure in side.failed]) for side in (key, value)]
        failed = [f"(NOT {absent} AND ({' OR '.join(whens)}))" for absent, whens in sides if whens]
        if self.window is not None:
            failed.append("w_corrupt")
        if self.keyed:
            failed.append(self._keyless)
        misspelled = [f"(NOT {side.absent} AND {side.misspelled})" for side in (key, value) if side.misspelled]
        whens = [f"WHEN {' OR '.join(misspelled)} THEN {UNKNOWN_SPELLING}"] if misspelled else []
        whens += [f"WHEN {' OR '.join(failed)} THEN {UNDECODABLE}"] if failed else []
        return f"CASE {' '.join(whens)} ELSE {GOOD} END" if whens else str(GOOD)


def side(columns: Sequence[Column], info: FormatInfo, *, unwrapped: bool, prefix: str, seen: frozenset[str]) -> Side:
    """The decoding of one side in its format."""
    raw = "key" if prefix == "k" else "value"
    match info.format:
        case "KAFKA":
            return kafka.side(columns, raw)
        case "JSON":
            return json.side(columns, raw, unwrapped=unwrapped, prefix=prefix, seen=seen)
        case "DELIMITED":
            return delimited.side(columns, raw, info, prefix=prefix)
        case "NONE":
            return nulls(raw, len(columns))
        case other:
            raise unsupported(other)


def unsupported(name: str) -> NotYetSupported:
    """AVRO, PROTOBUF and JSON_SR need a schema registry."""
    return NotYetSupported(Feature.FORMAT, name, hint="Use JSON, DELIMITED, KAFKA or NONE.")


def _header(column: Column) -> str:
    """All headers, or the value of the last one of a name."""
    if column.header is None:
        return "coalesce(hdr, array())"
    return f"try_element_at(filter(hdr, h -> h.f0 = {literal(column.header)}), -1).f1"


def _named(columns: Iterable[tuple[str, str]]) -> str:
    return "".join(f", {sql} AS {name}" for name, sql in columns)


def _list(names: Iterable[str]) -> str:
    return "".join(f", {name}" for name in names)
