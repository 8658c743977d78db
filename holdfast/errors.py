"""Every error a user can see.

    HoldfastError                       message, detail, hint, SQLSTATE, position
    ├── SyntaxProblem           42601   the text is not a statement or an expression
    ├── BindError               42000   the text is a statement, but not of these objects
    │   ├── UnknownColumn       42703
    │   ├── UnknownObject       42P01
    │   ├── UnknownFunction     42883
    │   ├── UnknownProperty     22023
    │   ├── DuplicateObject     42P07
    │   ├── TypeMismatch        42804
    │   ├── WrongObjectKind     42809
    │   ├── BadTime             22007   what AS OF or UP TO names is no time
    │   └── DependentObjects    2BP01
    ├── NotSupported            0A000   refused, with the reason
    │   └── NotYetSupported     0A000   a step, format, function, … that this release lacks
    ├── PlanError               XX001   a stored plan this release cannot read
    ├── ReadError               55000   an object has no readable time, or not that one
    │   ├── UnreadableTime      55000   no time fits both the query and the objects that it reads
    │   └── SubscriptionLagged  54000   a subscriber read too slowly for too long
    ├── TransactionProblem      25000   a statement and a transaction that do not go together
    │   ├── NoTransaction       25P01
    │   ├── OpenTransaction     25001
    │   ├── NotInTransaction    25000   a statement that its transaction cannot have
    │   ├── ReadOnlyTransaction 25006
    │   ├── FailedTransaction   25P02   nothing but ROLLBACK can follow
    │   └── RolledBack          40000   COMMIT of a transaction that had failed
    ├── AssertionFailed         P0004   what ASSERT says is not so
    ├── ConfigError             F0000   a setting is unknown or wrong
    ├── StartError              58000   the machine lacks something: Java, a port, a folder, disk
    ├── SparkEnded              58000   the process of Spark is gone
    ├── BrokerEnded             58000   the process of the embedded Kafka broker is gone
    ├── StoreError              58030   the store cannot be opened, or is not ours
    │   ├── StoreLocked         55006
    │   ├── ForeignStore        58P01
    │   └── StaleStore          58P02   the store is older than what sink topics have of it
    ├── BackupError             58P03   a backup cannot be made, or cannot be restored
    ├── KafkaError              08000   Kafka cannot be reached or refuses
    │   ├── TopicChanged        55000   a topic was recreated or truncated under a query
    │   └── CommandInDoubt      08007   Kafka did not say whether a statement was written
    └── ServiceTaken            55006   another server runs with this service id

Messages are short and lower case; detail and hint are sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a statement's text; line and column count from 1, offset from 0."""

    line: int
    column: int
    offset: int


class HoldfastError(Exception):
    """A problem told to the user in PostgreSQL's terms."""

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
    """The text cannot be read."""

    sqlstate = "42601"


class BindError(HoldfastError):
    """The text can be read, but does not fit the objects it names."""

    sqlstate = "42000"


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
    """A call of a function that is not declared."""

    sqlstate = "42883"

    def __init__(self, name: str, *, known: Sequence[str], position: Position | None = None) -> None:
        super().__init__(
            f'function "{name}" does not exist', hint=nearest(name, known, plural="functions"), position=position
        )


class UnknownProperty(BindError):
    """A WITH clause or a SET names a property that means nothing here."""

    sqlstate = "22023"

    def __init__(self, name: str, *, known: Sequence[str], position: Position | None = None) -> None:
        super().__init__(
            f'property "{name}" does not exist', hint=nearest(name, known, plural="properties"), position=position
        )


class DuplicateObject(BindError):
    """The name is taken."""

    sqlstate = "42P07"


class TypeMismatch(BindError):
    """An expression has a type that its place does not take."""

    sqlstate = "42804"


class WrongObjectKind(BindError):
    """The object exists, but is not of the kind that the statement needs."""

    sqlstate = "42809"


class BadTime(BindError):
    """A time or a duration that cannot be read as one."""

    sqlstate = "22007"


class DependentObjects(BindError):
    """The object cannot go while others read it."""

    sqlstate = "2BP01"


class NotSupported(HoldfastError):
    """Refused on purpose; the message says what, the detail why."""

    sqlstate = "0A000"


class Feature(StrEnum):
    """What a release can lack."""

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
    """A part of the language or of the plans that this release lacks. `missing` names it: `step tableSuppressV1`."""

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


class ReadError(HoldfastError):
    """An object cannot be read, or not at that time."""

    sqlstate = "55000"


class UnreadableTime(ReadError):
    """The time that a query asks for cannot be read in all of its objects."""


class HoldTimeError(ReadError):
    """A hold cannot be at that time."""

    sqlstate = "22023"


class SubscriptionLagged(ReadError):
    """A subscriber fell further behind than history is kept for it."""

    sqlstate = "54000"


class TransactionProblem(HoldfastError):
    """A statement that the state of its transaction does not allow."""

    sqlstate = "25000"


class NoTransaction(TransactionProblem):
    """There is none, or it has ended."""

    sqlstate = "25P01"


class OpenTransaction(TransactionProblem):
    """There is one already."""

    sqlstate = "25001"


class NotInTransaction(TransactionProblem):
    """A statement that its transaction cannot have."""


class ReadOnlyTransaction(TransactionProblem):
    """A statement that is no query."""

    sqlstate = "25006"


class FailedTransaction(TransactionProblem):
    """A statement of it has failed; it changes nothing any more."""

    sqlstate = "25P02"


class RolledBack(TransactionProblem):
    """A transaction was to be committed that had failed."""

    sqlstate = "40000"


class AssertionFailed(HoldfastError):
    """What ASSERT says is not so."""

    sqlstate = "P0004"


class ConfigError(HoldfastError):
    """A setting is unknown or has a value that cannot be used."""

    sqlstate = "F0000"


class StartError(HoldfastError):
    """The machine lacks something that the server needs."""

    sqlstate = "58000"


class SparkEnded(HoldfastError):
    """The process that Spark runs in is gone."""

    sqlstate = "58000"

    def __init__(self) -> None:
        super().__init__(
            "Spark has ended",
            detail="Its process ended by itself, as it does when it has no more memory.",
            hint="Nothing is lost: start the server again. If this comes again, give Spark more memory "
            "(-s spark.driver.memory=4g), or let it read less at once (max_bytes_per_tick).",
        )


class BrokerEnded(HoldfastError):
    """The process of the embedded Kafka broker is gone. `log_file` is what it wrote to."""

    sqlstate = "58000"

    def __init__(self, log_file: Path) -> None:
        super().__init__(
            "the embedded Kafka broker has ended",
            detail=f'Its process ended by itself, as it does when the disk is full. Its log is "{log_file}".',
            hint="Nothing is lost: start the server again, once what the log tells of is dealt with.",
        )


class StoreError(HoldfastError):
    """The store cannot be opened or written."""

    sqlstate = "58030"


class StoreLocked(StoreError):
    """Another process has the data folder."""

    sqlstate = "55006"


class ForeignStore(StoreError):
    """The store and the Kafka topics belong to different services."""

    sqlstate = "58P01"


class StaleStore(StoreError):
    """The store is an older copy of the one that wrote the sink topics."""

    sqlstate = "58P02"


class BackupError(HoldfastError):
    """A backup cannot be made, or is not whole, or cannot be restored there."""

    sqlstate = "58P03"


class KafkaError(HoldfastError):
    """Kafka cannot be reached, or refuses."""

    sqlstate = "08000"


class TopicChanged(KafkaError):
    """A topic was recreated or truncated under a query that had read it."""

    sqlstate = "55000"


class CommandInDoubt(KafkaError):
    """Kafka did not say whether a command was written."""

    sqlstate = "08007"

    def __init__(self, problem: KafkaError) -> None:
        super().__init__(
            "it is not known whether the statement took effect",
            detail=problem.detail or f"{problem.message[:1].upper()}{problem.message[1:]}.",
            hint="Once Kafka answers again it is done if it was written: look before you repeat it.",
        )


class ServiceTaken(HoldfastError):
    """Another server runs with this service id."""

    sqlstate = "55006"
