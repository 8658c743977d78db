"""A query test: statements, input records, and the expected results.

The format is that of ksqlDB's query tests, extended by `steps`, which interleave records, statements and expectations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from holdfast.runtime.plan.json_text import JsonValue


@dataclass(frozen=True, slots=True)
class Window:
    """The window of a windowed key, in milliseconds. The end of a session is inclusive."""

    start: int
    end: int
    session: bool


@dataclass(frozen=True, slots=True)
class Header:
    """One header of a record."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """An input record or an expected record, with key and value as JSON.

    A `timestamp` of None is 0 for an input and matches anything for an expected record.
    """

    topic: str
    key: JsonValue = None
    value: JsonValue = None
    timestamp: int | None = None
    window: Window | None = None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """The error that the last statement must raise. `type` is a Java class of ksqlDB or one of our classes."""

    type: str | None = None
    message: str | None = None
    sqlstate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSource:
    """An object that the catalog must have at the end; fields that are None are not checked."""

    name: str
    kind: str
    schema: str | None = None
    key_format: Mapping[str, JsonValue] | None = None
    value_format: str | None = None
    key_features: tuple[str, ...] | None = None
    value_features: tuple[str, ...] | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTopic:
    """A topic that must exist at the end."""

    name: str
    key_format: str | None = None
    value_format: str | None = None
    partitions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Conditions after the last record. No topic name may fully match the regular expression `forbidden_topics`."""

    sources: tuple[ExpectedSource, ...] = ()
    topics: tuple[ExpectedTopic, ...] = ()
    forbidden_topics: str | None = None


# ---- steps


@dataclass(frozen=True, slots=True)
class InputStep:
    """Input records, each in its own tick, or all in one tick."""

    records: tuple[CaseRecord, ...]
    together: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementStep:
    """A statement. A SELECT … EMIT stays open under `name`; `rows` are the expected rows of a pull query."""

    text: str
    name: str | None = None
    rows: tuple[tuple[JsonValue, ...], ...] | None = None
    error: ExpectedError | None = None


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """A row of a push query; a tombstone means that the row was deleted."""

    values: tuple[JsonValue, ...]
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class RowsStep:
    """Exactly the rows that an open push query has sent since the previous `RowsStep`, in order."""

    query: str
    rows: tuple[ExpectedRow, ...]


Step: TypeAlias = InputStep | StatementStep | RowsStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test. With `plans`, these encoded plans run instead of `statements`."""

    file: str
    name: str
    statements: tuple[str, ...] = ()
    plans: tuple[bytes, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[CaseRecord, ...] = ()
    outputs: tuple[CaseRecord, ...] = ()
    steps: tuple[Step, ...] = ()
    expected_error: ExpectedError | None = None
    post: Post | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file} - {self.name}"


@dataclass(frozen=True, slots=True)
class Malformed:
    """A test that cannot be parsed, and why."""

    file: str
    name: str
    reason: str


class Result(StrEnum):
    """The outcome of a case."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a case and why it did not pass. `missing` names the feature that an unsupported case needs."""

    result: Result
    reason: str | None = None
    missing: str | None = None


PASSED = Verdict(Result.PASSED)
