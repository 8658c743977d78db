"""Sample streams: columns with SQL types, and a generator of rows in bulk."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Values: TypeAlias = "npt.NDArray[Any] | pa.Array"
Make = Callable[[np.random.Generator, int, int], Mapping[str, Values]]
"""Rows `first` to `first + count`, by column; the random generator continues from call to call."""


BLOCK_ROWS = 4096


class SampleKind(StrEnum):
    """Whether the topic is declared as a stream or a table."""

    STREAM = "STREAM"
    TABLE = "TABLE"


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample. The first column is the record's key and is not part of the JSON value."""

    name: str
    about: str
    kind: SampleKind
    columns: Mapping[str, str]
    start: Callable[[], Make]

    @property
    def key(self) -> str:
        return next(iter(self.columns))

    def statement(self, topic: str) -> str:
        """The statement that declares a stream or table over a topic with these rows."""
        role = " PRIMARY KEY" if self.kind is SampleKind.TABLE else " KEY"
        columns = ", ".join(f"{name} {type_}{role if name == self.key else ''}" for name, type_ in self.columns.items())
        return (
            f"CREATE {self.kind} {self.name} ({columns})\n"
            f"  WITH (KAFKA_TOPIC = '{topic}', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON');"
        )


class Supply:
    """An endless supply of rows: the same seed gives the same rows, regardless of how many are taken at once."""

    def __init__(self, sample: Sample, seed: int) -> None:
        self._sample = sample
        self._make = sample.start()
        self._random = np.random.default_rng(seed)
        self._generated = 0
        self._buffer = self._block()

    def take(self, count: int) -> pa.Table:
        """The next rows as records: `key` and `value`."""
        while self._buffer.num_rows < count:
            self._buffer = pa.concat_tables([self._buffer, self._block()])
        taken, self._buffer = self._buffer.slice(0, count), self._buffer.slice(count)
        return taken

    def _block(self) -> pa.Table:
        # All blocks have the same size, because a random generator's values depend on how many are drawn at once.
        columns = self._make(self._random, self._generated, BLOCK_ROWS)
        self._generated += BLOCK_ROWS
        key = pa.array(columns[self._sample.key]).cast(pa.string())
        values = {name: columns[name] for name in self._sample.columns if name != self._sample.key}
        return pa.table({"key": key.cast(pa.binary()), "value": json_objects(values)})


def json_objects(columns: Mapping[str, Values]) -> pa.Array:
    """Each row as a JSON object, built column by column."""
    parts: list[object] = []
    for index, (name, values) in enumerate(columns.items()):
        parts.append(f'{"," if index else "{"}"{name}":')
        parts.append(json_values(pa.array(values)))
    return pc.binary_join_element_wise(*parts, "}", "").cast(pa.binary())


def json_values(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        # The samples' strings have no characters that JSON must escape.
        return pc.binary_join_element_wise('"', values, '"', "")
    return values.cast(pa.string())


def numbered(prefix: str, numbers: npt.NDArray[np.integer], digits: int) -> pa.Array:
    """Ids: `prefix` and a number with leading zeros."""
    text = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(prefix, text, "")


def weighted(random: np.random.Generator, weights: Sequence[float], count: int) -> npt.NDArray[np.int64]:
    """Random indexes into a list, by weight."""
    return random.choice(len(weights), count, p=np.asarray(weights, float) / np.sum(weights))


def words(known: Sequence[str], indexes: npt.NDArray[np.int64]) -> pa.Array:
    """The words at these indexes."""
    return pa.DictionaryArray.from_arrays(pa.array(indexes), pa.array(known)).cast(pa.string())


def chosen(random: np.random.Generator, weights: Mapping[str, float], count: int) -> pa.Array:
    """Random words, by weight."""
    return words(list(weights), weighted(random, list(weights.values()), count))


def popular(random: np.random.Generator, limit: int, count: int) -> npt.NDArray[np.int64]:
    """Random numbers below `limit`; a few occur far more often than most (a Zipf distribution)."""
    return ((random.zipf(1.3, count) * 2_654_435_761) % limit).astype(np.int64)
