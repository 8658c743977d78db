"""Every error a user can see.

    HoldfastError                       message, detail, hint, SQLSTATE, position
    ├── SyntaxProblem           42601   the text is not a statement or an expression
    ├── BindError               42000   a valid statement that does not fit the catalog
    │   ├── UnknownColumn       42703
    │   ├── UnknownObject       42P01
    │   ├── UnknownFunction     42883
    │   ├── UnknownProperty     22023
    │   ├── DuplicateObject     42P07
    │   ├── TypeMismatch        42804
    │   ├── WrongObjectKind     42809
    │   ├── BadTime             22007   AS OF or UP TO is not a valid time
    │   ├── TopologyError       42000   a topology of `holdfast.streams` that cannot be built
    │   └── DependentObjects    2BP01
    ├── NotPermitted            42501   the server's settings forbid it
    ├── NotSupported            0A000   rejected, with the reason
    │   └── NotYetSupported     0A000   a step, format, function, … missing from this release
    ├── PlanError               XX001   a stored plan this release cannot read
    ├── WrongWindowLayout       22000   the keys of a topic do not have the declared windows
    ├── ReadError               55000   an object has no readable time, or not that one
    │   ├── UnreadableTime      55000   not all objects of the query can be read at the requested time
    │   ├── HoldTimeError       22023   a hold cannot be placed at that time
    │   ├── ResultTooLarge      54000   the result of a pull query does not fit into memory
    │   ├── SubscriptionLagged  54000   a subscriber fell further behind than its limit
    │   └── ObjectDropped       57P04   an object was dropped under a push query, or since it was last read
    ├── TransactionProblem      25000   a statement that the transaction does not allow
    │   ├── NoTransaction       25P01
    │   ├── OpenTransaction     25001
    │   ├── NotInTransaction    25000   a statement that this transaction cannot contain
    │   ├── ReadOnlyTransaction 25006
    │   ├── FailedTransaction   25P02   only ROLLBACK is allowed
    │   └── RolledBack          40000   COMMIT of a failed transaction
    ├── AssertionFailed         P0004   the condition of an ASSERT does not hold
    ├── ConfigError             F0000   a setting is unknown or wrong
    ├── StartError              58000   the server is missing something: Java, a port, a folder, disk space
    ├── RequestTimeout          57014   the coordinator did not finish a request in time
    ├── SparkEnded              58000   Spark's process has ended
    ├── SparkRestarted          57P01   Spark's process ended while a job ran; running it again helps
    ├── JobTimeout              57014   a Spark job took longer than query_timeout
    ├── BrokerEnded             58000   the embedded Kafka broker's process has ended
    ├── StoreError              58030   the store cannot be opened, or belongs to another service
    │   ├── StoreLocked         55006
    │   ├── StoreEnded          58030   the store does nothing more until the server starts again
    │   ├── ForeignStore        58P01
    │   └── StaleStore          58P02   the store is older than the contents of its sink topics
    ├── BackupError             58P03   a backup cannot be made, or cannot be restored
    ├── KafkaError              08000   Kafka cannot be reached, or rejects a request
    │   ├── TopicChanged        55000   a topic was recreated or truncated under a query
    │   └── CommandInDoubt      08007   Kafka did not confirm whether a statement was written
    └── ServiceTaken            55006   another server runs with this service id

Messages are short and lower case; detail and hint are sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a statement's text; line and column start at 1, offset at 0."""

    line: int
    column: int
    offset: int


class HoldfastError(Exception):
    """A problem reported to the user in PostgreSQL's terms."""

    sqlstate: str = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: Position | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position

    def __str__(self) -> str:
        where = f" at line {self.position.line}, column {self.position.column}" if self.position else ""
        lines = [f"{self.message}{where}"]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)


class SyntaxProblem(HoldfastError):
    """The text cannot be parsed."""

    sqlstate = "42601"


class BindError(HoldfastError):
    """The statement can be parsed, but does not fit the objects that it names."""

    sqlstate = "42000"


def size_text(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 2**20:,.0f} MB" if count >= 2**20 else f"{count / 2**10:,.0f} kB"


def nearest(name: str, known: Sequence[str], *, plural: str) -> str:
    """A hint that names the closest known name, or all of them when none is close."""
    close = get_close_matches(name.upper(), [k.upper() for k in known], n=1)
    if close:
        original = next(k for k in known if k.upper() == close[0])
        return f'Did you mean "{original}"?'
    return f"Known {plural} are: {', '.join(known)}." if known else f"There are no {plural} yet."


class UnknownColumn(BindError):
    """A query names a column that its relation does not have."""

    sqlstate = "42703"

    def __init__(self, column: str, *, relation: str, known: Sequence[str], position: Position | None = None) -> None:
        super().__init__(
            f'column "{column}" does not exist in "{relation}"',
            hint=nearest(column, known, plural="columns"),
            position=position,
        )


class UnknownObject(BindError):
    """A statement names an object that the catalog does not have."""

    sqlstate = "42P01"

    def __init__(self, name: str, *, kind: str, known: Sequence[str], position: Position | None = None) -> None:
        super().__init__(
            f'{kind} "{name}" does not exist', hint=nearest(name, known, plural="names"), position=position
        )


class UnknownFunction(BindError):
    """A call to a function that does not exist."""

    sqlstate = "42883"

    def __init__(self, name: str, *, known: Sequence[str], position: Position | None = None) -> None:
        super().__init__(
            f'function "{name}" does not exist', hint=nearest(name, known, plural="functions"), position=position
        )


class UnknownProperty(BindError):
    """A WITH clause or a SET names a property that does not exist."""

    sqlstate = "22023"

    def __init__(self, name: str, *, known: Sequence[str], position: Position | None = None) -> None:
        super().__init__(
            f'property "{name}" does not exist', hint=nearest(name, known, plural="properties"), position=position
        )


class DuplicateObject(BindError):
    """The name is already in use."""

    sqlstate = "42P07"


class TypeMismatch(BindError):
    """An expression has a type that is not allowed there."""

    sqlstate = "42804"


class WrongObjectKind(BindError):
    """The object exists, but is not of the kind that the statement needs."""

    sqlstate = "42809"


class BadTime(BindError):
    """A time or a duration that cannot be parsed."""

    sqlstate = "22007"


class TopologyError(BindError):
    """A topology of `holdfast.streams` that cannot be built."""


class DependentObjects(BindError):
    """The object cannot be dropped because other objects depend on it."""

    sqlstate = "2BP01"


class NotPermitted(HoldfastError):
    """A statement that the server's settings forbid."""

    sqlstate = "42501"


class NotSupported(HoldfastError):
    """Rejected on purpose; the message says what, the detail why."""

    sqlstate = "0A000"


class Feature(StrEnum):
    """The kind of a feature that is not supported yet."""

    CLAUSE = "clause"
    COLUMN = "column"
    EXPRESSION = "expression"
    FORMAT = "format"
    FUNCTION = "function"
    PROPERTY = "property"
    STATEMENT = "statement"
    STEP = "step"
    TOPIC = "topic"
    TYPE = "type"


class NotYetSupported(NotSupported):
    """A feature of SQL or of plans that is missing from this release. `missing` names it: `step tableSuppressV1`."""

    def __init__(
        self,
        feature: Feature,
        name: str,
        message: str | None = None,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: Position | None = None,
    ) -> None:
        super().__init__(
            message or f"{feature} {name} is not supported yet", detail=detail, hint=hint, position=position
        )
        self.missing = f"{feature} {name}"


class PlanError(HoldfastError):
    """A stored plan that this release cannot read or run."""

    sqlstate = "XX001"


class WrongWindowLayout(HoldfastError):
    """The first records of a topic do not have keys of the layout that its table declares."""

    sqlstate = "22000"


class ReadError(HoldfastError):
    """An object cannot be read, or not at that time."""

    sqlstate = "55000"


class UnreadableTime(ReadError):
    """Not all objects of the query can be read at the requested time."""


class HoldTimeError(ReadError):
    """A hold cannot be placed at that time."""

    sqlstate = "22023"


class SubscriptionLagged(ReadError):
    """A subscriber fell further behind than history is retained for it."""

    sqlstate = "54000"


class ObjectDropped(ReadError):
    """An object was dropped under a push query, or since the query was last read; another may have its name."""

    sqlstate = "57P04"


class TransactionProblem(HoldfastError):
    """A statement that the state of its transaction does not allow."""

    sqlstate = "25000"


class NoTransaction(TransactionProblem):
    """There is no open transaction."""

    sqlstate = "25P01"


class OpenTransaction(TransactionProblem):
    """A transaction is already open."""

    sqlstate = "25001"


class NotInTransaction(TransactionProblem):
    """A statement that this transaction cannot contain."""


class ReadOnlyTransaction(TransactionProblem):
    """A statement other than a query, in a read-only transaction."""

    sqlstate = "25006"


class FailedTransaction(TransactionProblem):
    """An earlier statement of the transaction has failed; only ROLLBACK is allowed."""

    sqlstate = "25P02"


class RolledBack(TransactionProblem):
    """COMMIT of a failed transaction, which was rolled back instead."""

    sqlstate = "40000"


class AssertionFailed(HoldfastError):
    """The condition of an ASSERT statement does not hold."""

    sqlstate = "P0004"


class ConfigError(HoldfastError):
    """A setting is unknown or has a value that cannot be used."""

    sqlstate = "F0000"


class StartError(HoldfastError):
    """Something that the server needs is missing or cannot be used."""

    sqlstate = "58000"


class ResultTooLarge(ReadError):
    """The result of a pull query, or what it would have to read at once, does not fit into memory."""

    sqlstate = "54000"

    def __init__(self, max_bytes: int, what: str = "the result of the query") -> None:
        super().__init__(
            f"{what} is larger than {size_text(max_bytes)}",
            detail="A pull query has all of its rows in memory at once (max_result_bytes).",
            hint="Read fewer rows or columns with WHERE, LIMIT or an aggregate. EMIT ALL and SUBSCRIBE to a table send "
            "all of its rows in pages, whatever their number.",
        )


class RequestTimeout(HoldfastError):
    """A request waited too long for the coordinator. Unless it has `begun`, it never takes effect."""

    sqlstate = "57014"

    def __init__(self, what: str, seconds: float, *, begun: bool, busy: str | None = None) -> None:
        self.begun = begun
        if begun:
            super().__init__(
                f"the server did not finish within {seconds:g} s: {what}",
                detail="It has begun, and may still take effect.",
                hint="Check whether it did before you repeat it; request_timeout sets how long a request waits.",
            )
        else:
            super().__init__(
                f"the server was too busy for {seconds:g} s: {what}",
                detail=f"The request was withdrawn and has no effect.{f' The coordinator is {busy}.' if busy else ''}",
                hint="Repeat it later; /healthcheck shows what the server is busy with.",
            )


class SparkEnded(HoldfastError):
    """Spark's process has ended and does not start again."""

    sqlstate = "58000"

    def __init__(self) -> None:
        super().__init__(
            "Spark has ended",
            detail="Its process stopped unexpectedly, and could not be started again; the usual cause is a lack of "
            "memory.",
            hint="No data is lost: restart the server. If this happens again, give Spark more memory "
            "(-s spark.driver.memory=4g), or lower max_bytes_per_tick.",
        )


class SparkRestarted(HoldfastError):
    """Spark's process ended while a job ran; another is started for the next job."""

    sqlstate = "57P01"

    def __init__(self, *, beside_read: bool = False) -> None:
        """`beside_read` says whether a client's read ran in the process, which may be the cause."""
        self.beside_read = beside_read
        super().__init__(
            "Spark was restarted",
            detail="Its process ended: for lack of memory, or because a job took longer than query_timeout and could "
            "not be cancelled.",
            hint="Run the statement again.",
        )


class JobTimeout(HoldfastError):
    """A Spark job took longer than the limit, and was cancelled."""

    sqlstate = "57014"

    def __init__(self, limit: timedelta) -> None:
        super().__init__(
            f"the query took longer than {limit.total_seconds():g} s for one Spark job (query_timeout)",
            hint="A regular expression may backtrack without end, or a join may have too many matches: correct the "
            "query with CREATE OR REPLACE, or raise query_timeout.",
        )


class BrokerEnded(HoldfastError):
    """The embedded Kafka broker's process has ended; `log_file` is its log."""

    sqlstate = "58000"

    def __init__(self, log_file: Path) -> None:
        super().__init__(
            "the embedded Kafka broker has ended",
            detail=f'Its process stopped unexpectedly; the usual cause is a full disk. Its log is "{log_file}".',
            hint="No data is lost: fix the problem that the log shows, then restart the server.",
        )


class StoreError(HoldfastError):
    """The store cannot be opened or written."""

    sqlstate = "58030"


class StoreLocked(StoreError):
    """Another process is using the data folder."""

    sqlstate = "55006"


class StoreEnded(StoreError):
    """The store has failed for good: no operation succeeds until the server starts again."""


class ForeignStore(StoreError):
    """The store and the Kafka topics belong to different services."""

    sqlstate = "58P01"


class StaleStore(StoreError):
    """The store is an older copy of the one that wrote the sink topics."""

    sqlstate = "58P02"


class BackupError(HoldfastError):
    """A backup cannot be made, is incomplete, or cannot be restored."""

    sqlstate = "58P03"


class KafkaError(HoldfastError):
    """Kafka cannot be reached, or rejects a request."""

    sqlstate = "08000"


class TopicChanged(KafkaError):
    """A topic was recreated or truncated under a query that had read it."""

    sqlstate = "55000"


class CommandInDoubt(KafkaError):
    """Kafka did not confirm whether a command was written."""

    sqlstate = "08007"

    def __init__(self, problem: KafkaError) -> None:
        super().__init__(
            "it is not known whether the statement took effect",
            detail=problem.detail or f"{problem.message[:1].upper()}{problem.message[1:]}.",
            hint="If it was written, it takes effect once Kafka is reachable. Check before you repeat it.",
        )


class ServiceTaken(HoldfastError):
    """Another server runs with this service id."""

    sqlstate = "55006"
