"""What a sample stream is: columns with SQL types, and a way to make any number of rows at once."""

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
"""Rows `first` to `first + count`, by column; the generator goes on from one call to the next."""


BLOCK_ROWS = 4096


class Kind(StrEnum):
    """What the topic is declared as."""

    STREAM = "STREAM"
    TABLE = "TABLE"


@dataclass(frozen=True, slots=True)
class Sample:
    """A kind of sample rows. The first column is the key, and is not in the JSON."""

    name: str
    about: str
    kind: Kind
    columns: Mapping[str, str]
    start: Callable[[], Make]

    @property
    def key(self) -> str:
        return next(iter(self.columns))

    def statement(self, topic: str) -> str:
        """The statement that declares a topic of these rows."""
        role = " PRIMARY KEY" if self.kind is Kind.TABLE else " KEY"
        columns = ", ".join(f"{name} {type_}{role if name == self.key else ''}" for name, type_ in self.columns.items())
        return (
            f"CREATE {self.kind} {self.name} ({columns})\n"
            f"  WITH (KAFKA_TOPIC = '{topic}', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON');"
        )


class Supply:
    """An endless supply of rows of a sample: the same rows from the same seed, however they are taken."""

    def __init__(self, sample: Sample, seed: int) -> None:
        self._sample = sample
        self._make = sample.start()
        self._random = np.random.default_rng(seed)
        self._made = 0
        self._left = self._block()

    def take(self, count: int) -> pa.Table:
        """The next rows, as a topic has them: `key` and `value`."""
        while self._left.num_rows < count:
            self._left = pa.concat_tables([self._left, self._block()])
        taken, self._left = self._left.slice(0, count), self._left.slice(count)
        return taken

    def _block(self) -> pa.Table:
        # Of one size: what a generator gives depends on how many values it is asked for at once.
        columns = self._make(self._random, self._made, BLOCK_ROWS)
        self._made += BLOCK_ROWS
        key = pa.array(columns[self._sample.key]).cast(pa.string())
        values = {name: columns[name] for name in self._sample.columns if name != self._sample.key}
        return pa.table({"key": key.cast(pa.binary()), "value": json_objects(values)})


def json_objects(columns: Mapping[str, Values]) -> pa.Array:
    """Each row as a JSON object, made column by column."""
    parts: list[object] = []
    for place, (name, values) in enumerate(columns.items()):
        parts.append(f'{"," if place else "{"}"{name}":')
        parts.append(json_values(pa.array(values)))
    return pc.binary_join_element_wise(*parts, "}", "").cast(pa.binary())


def json_values(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        # The texts are our own, and none has a character that JSON would want escaped.
        return pc.binary_join_element_wise('"', values, '"', "")
    return values.cast(pa.string())


def numbered(prefix: str, numbers: npt.NDArray[np.integer], digits: int) -> pa.Array:
    """`prefix` and a number with leading zeros: ids."""
    text = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(prefix, text, "")


def weighted(random: np.random.Generator, weights: Sequence[float], count: int) -> npt.NDArray[np.int64]:
    """Places in a list at random, by weight."""
    return random.choice(len(weights), count, p=np.asarray(weights, float) / np.sum(weights))


def words(known: Sequence[str], places: npt.NDArray[np.int64]) -> pa.Array:
    """The words at these places."""
    return pa.DictionaryArray.from_arrays(pa.array(places), pa.array(known)).cast(pa.string())


def chosen(random: np.random.Generator, weights: Mapping[str, float], count: int) -> pa.Array:
    """Words at random, by weight."""
    return words(list(weights), weighted(random, list(weights.values()), count))


def popular(random: np.random.Generator, among: int, count: int) -> npt.NDArray[np.int64]:
    """Numbers below `among`, a few of them far more often than most, as people and pages are."""
    return ((random.zipf(1.3, count) * 2_654_435_761) % among).astype(np.int64)
