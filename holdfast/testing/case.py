"""A query test: statements, records in, and what must come of them.

The shapes are those of ksqlDB's query tests, and of our own longer form, whose `steps` interleave records, statements
and what they must give.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from holdfast.runtime.plan.jsontext import JsonValue


@dataclass(frozen=True, slots=True)
class Window:
    """The window of a windowed key, in milliseconds. A session's end belongs to it."""

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
    """A record to be read, or one that is expected; key and value are as its topic's formats show them in JSON.

    `timestamp` None is 0 for a record to be read, and anything for one that is expected.
    """

    topic: str
    key: JsonValue = None
    value: JsonValue = None
    timestamp: int | None = None
    window: Window | None = None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """An error that the last statement must give. `type` is a class of ksqlDB's, or the name of one of ours."""

    type: str | None = None
    message: str | None = None
    sqlstate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSource:
    """An object that must be in the catalog afterwards; what is None is not looked at."""

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
    """A topic that must be there afterwards."""

    name: str
    key_format: str | None = None
    value_format: str | None = None
    partitions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What must hold after the last record. No topic may match `forbidden_topics`, a regular expression, whole."""

    sources: tuple[ExpectedSource, ...] = ()
    topics: tuple[ExpectedTopic, ...] = ()
    forbidden_topics: str | None = None


# ---- steps of the longer form


@dataclass(frozen=True, slots=True)
class InputStep:
    """Records that arrive, each in a tick of its own; or all in one."""

    records: tuple[CaseRecord, ...]
    together: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementStep:
    """A statement. A SELECT … EMIT stays open under `name`; `rows` are what a pull must answer."""

    text: str
    name: str | None = None
    rows: tuple[tuple[JsonValue, ...], ...] | None = None
    error: ExpectedError | None = None


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """A row of a push query; a tombstone says that the row of a key is no more."""

    values: tuple[JsonValue, ...]
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class RowsStep:
    """The rows that an open push query has given since it was last looked at: these, in this order, no others."""

    query: str
    rows: tuple[ExpectedRow, ...]


Step: TypeAlias = InputStep | StatementStep | RowsStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test. With `plans`, these encoded plans run in place of `statements`."""

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
    """A test that cannot be read, and why."""

    file: str
    name: str
    reason: str


class Result(StrEnum):
    """How a case went."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case went, and why it did not pass. `missing` names what an unsupported one lacks."""

    result: Result
    reason: str | None = None
    missing: str | None = None


PASSED = Verdict(Result.PASSED)
