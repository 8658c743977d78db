"""Topic records to typed columns, as one Spark SQL text per source.

A decoder reads a view of raw records (`part, off, ts, key, value, hdr`) and returns the key columns `k0..`, the value
columns `c0..` with header columns last, `ts`, `part`, `off`, `hdr`, and `bad`:

    0  decoded     1  cannot be decoded

A row with `bad` > 0 has nulls in all columns and stays in the result until the end of a query's SQL, so that finding
bad records needs no second pass. `tombstone` is true where the record has no value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.runtime import physical_columns as col
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.windows import WindowInfo, WindowTopic
from holdfast.runtime.serdes.formats import format_of
from holdfast.runtime.serdes.scalar_text import literal
from holdfast.runtime.serdes.side import DecodedSide, DecodeFailure, record_sides
from holdfast.runtime.serdes.window import WindowedKeySql
from holdfast.types import Column, Schema

GOOD, UNDECODABLE = 0, 1


@dataclass(frozen=True, slots=True)
class Decoder:
    """How the records of a topic become rows of `schema`. With `keyed`, a record without a key is bad.

    With `window`, the key's bytes end with a window in the layout of `window_topic`, whose start and end are the last
    two of `k0..`. A key of a changelog that has a sequence number is bad: its window has several values.
    """

    schema: Schema
    formats: Formats
    keyed: bool = False
    window: WindowInfo | None = None
    window_topic: WindowTopic = WindowTopic.TOPIC

    def sql(self, view: str) -> str:
        """The SELECT that decodes the records of a view."""
        key, value = self._sides()
        level, names = self._typed(view, key, value)
        bad = self._bad(key, value)
        level = f"SELECT part, off, ts, hdr, {value.absent} AS tombstone, {bad} AS bad{_list(names)} FROM ({level})"
        nulled = _named((name, f"IF(bad = 0, {name}, NULL)") for name in names)
        return f"SELECT part, off, ts, tombstone, bad, hdr{nulled} FROM ({level})"

    def _typed(self, view: str, key: DecodedSide, value: DecodedSide) -> tuple[str, list[str]]:
        """The SELECT of all levels of decoding, and the names of the resulting columns."""
        view, bounds = self._unwindowed(view)
        parsed = _named((*key.parsed, *value.parsed))
        level = f"SELECT part, off, ts, key, value, hdr{_list(bounds)}{parsed} FROM {view}"
        carried = _list([*bounds, *(name for name, _ in (*key.parsed, *value.parsed))])
        texts = _named((*key.texts, *value.texts))
        level = f"SELECT part, off, ts, key, value, hdr{carried}{texts} FROM ({level})"
        carried += _list(name for name, _ in (*key.texts, *value.texts))
        names = col.keys(len(self.schema.key)) + col.values(len(self.schema.row))
        headers = map(_header, self.schema.headers)
        windows = [col.key(len(self.schema.key) + i) for i in range(len(bounds[:2]))]
        typed = _named(zip(names, (*key.typed, *value.typed, *headers), strict=True))
        typed += _named(zip(windows, bounds[:2], strict=True))
        level = f"SELECT part, off, ts, key, value, hdr{carried}{typed} FROM ({level})"
        return level, names + windows

    def check(self) -> None:
        """Reject columns and formats that cannot be decoded, before reading any record."""
        self.sql("records")

    def reason_sql(self, view: str, limit: int) -> str:
        """The SELECT of the records that cannot be decoded: position, raw bytes, the reason and the total."""
        key, value = self._sides()
        level, _ = self._typed(view, key, value)
        bad = f"SELECT * FROM (SELECT *, {self._bad(key, value)} AS bad FROM ({level})) WHERE bad = {UNDECODABLE}"
        reasons = f"SELECT part AS p, off AS o, {self._reason(key, value)} AS reason FROM ({bad})"
        return (
            f"SELECT part, off, ts, key, value, reason, count(*) OVER () AS total FROM {view} "
            f"JOIN ({reasons}) ON part = p AND off = o ORDER BY part, off LIMIT {limit}"
        )

    def _sides(self) -> tuple[DecodedSide, DecodedSide]:
        key, value = record_sides(self.schema, self.formats)
        return format_of(key.info).decode(key), format_of(value.info).decode(value)

    @property
    def _windowed_key(self) -> WindowedKeySql | None:
        return None if self.window is None else WindowedKeySql(self.window, self.window_topic)

    def _unwindowed(self, view: str) -> tuple[str, list[str]]:
        """The records with the window removed from `key`, and the names of the columns that hold it."""
        key = self._windowed_key
        if key is None:
            return view, []
        columns = dict(zip(("w_start", "w_end"), key.bounds("key"), strict=True)) | {"w_bytes": "octet_length(key)"}
        if (sequence := key.sequence("key")) is not None:
            columns["w_sequence"] = f"IF({key.too_short('key')}, 0, {sequence})"
        window = _named(columns.items())
        return f"(SELECT part, off, ts, {key.inner('key')} AS key, value, hdr{window} FROM {view})", [*columns]

    def _window_failures(self) -> Sequence[DecodeFailure]:
        """Neither applies where the record has no key."""
        key = self._windowed_key
        if key is None:
            return ()
        short = DecodeFailure(f"coalesce(w_bytes < {key.width}, false)", key.too_short_reason("w_bytes"))
        if key.sequence("key") is None:
            return (short,)
        several = literal(": its window has several values, as in the store of a join")
        reason = f"concat('the key has sequence number ', w_sequence, {several})"
        return short, DecodeFailure("coalesce(w_sequence <> 0, false)", reason)

    def _reason(self, key: DecodedSide, value: DecodedSide) -> str:
        """Why a record cannot be decoded: the first reason if there are several."""
        failures = [*self._window_failures()]
        failures += [DecodeFailure(f"NOT {s.absent} AND {f.when}", f.why) for s in (key, value) for f in s.failed]
        if self.keyed:
            failures.append(
                DecodeFailure(self._keyless, literal("the record has no key, but a row of a table needs one"))
            )
        whens = " ".join(f"WHEN {failure.when} THEN {failure.why}" for failure in failures)
        return f"CASE {whens} END"

    @property
    def _keyless(self) -> str:
        return "(" + " AND ".join(f"{name} IS NULL" for name in col.keys(len(self.schema.key))) + ")"

    def _bad(self, key: DecodedSide, value: DecodedSide) -> str:
        sides = [(side.absent, [failure.when for failure in side.failed]) for side in (key, value)]
        failed = [f"(NOT {absent} AND ({' OR '.join(whens)}))" for absent, whens in sides if whens]
        failed += [failure.when for failure in self._window_failures()]
        if self.keyed:
            failed.append(self._keyless)
        return f"IF({' OR '.join(failed)}, {UNDECODABLE}, {GOOD})" if failed else str(GOOD)


def _header(column: Column) -> str:
    """All headers, or the value of the last header with the column's header name."""
    if column.header is None:
        return "coalesce(hdr, array())"
    return f"try_element_at(filter(hdr, h -> h.f0 = {literal(column.header)}), -1).f1"


def _named(columns: Iterable[tuple[str, str]]) -> str:
    return "".join(f", {sql} AS {name}" for name, sql in columns)


def _list(names: Iterable[str]) -> str:
    return "".join(f", {name}" for name in names)
