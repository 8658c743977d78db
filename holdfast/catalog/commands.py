"""Commands, the records of the command topic, and their codec.

`holdfast.catalog.fold` builds the catalog from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from holdfast.catalog.objects import (
    NO_PROPERTIES,
    Hold,
    TopicSettings,
)
from holdfast.errors import HoldfastError, PlanError
from holdfast.names import HoldId, ObjectName, StoreId
from holdfast.runtime.plan import json_text
from holdfast.version import VERSION

PARTITIONS = "holdfast.topic.partitions"
REPLICAS = "holdfast.topic.replicas"
RETENTION_MS = "holdfast.topic.retention.ms"
CLEANUP_POLICY = "holdfast.topic.cleanup.policy"
DELETE_TOPIC = "holdfast.topic.delete"
RETAIN_MS = "holdfast.retain.history.ms"
"""How long a table retains its history; empty for the default."""
HOLD_ID = "holdfast.hold.id"
HOLD_ON = "holdfast.hold.on"
HOLD_MAX_LAG = "holdfast.hold.max.lag.ms"
HOLD_NAME = "holdfast.hold.name"


class CommandType(StrEnum):
    """The first part of a command's key."""

    STREAM = "stream"
    TABLE = "table"
    TYPE = "type"
    FUNCTION = "function"
    HOLD = "hold"
    VIEW = "view"
    TRANSACTION = "transaction"
    MATERIALIZED_VIEW = "materialized_view"
    INDEX = "index"
    TERMINATE = "terminate"
    PAUSE = "pause"
    RESUME = "resume"

    @classmethod
    def of(cls, kind: str) -> Self:
        """The type for a kind of object, such as `materialized view`."""
        return cls(kind.replace(" ", "_"))


class CommandAction(StrEnum):
    """The last part of a command's key."""

    CREATE = "create"
    DROP = "drop"
    INSERT = "insert"
    ALTER = "alter"
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True)
class CommandId:
    """The key of a command: `stream/PAGEVIEWS/create`. Unknown types and actions are plain text."""

    type: str
    entity: str
    action: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a key; one in another form becomes an entity without type and action."""
        type_, _, rest = text.strip('"').partition("/")
        entity, separator, action = rest.rpartition("/")
        return cls(type_, entity, action) if separator else cls("", text, "")

    def __str__(self) -> str:
        return f"{self.type}/{self.entity}/{self.action}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One record of the command topic, at `offset`; `problem` says why it could not be read.

    A transaction is also one record: its `parts` are applied in order, all or none.
    """

    id: CommandId
    statement: str
    plan: bytes | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: NO_PROPERTIES)
    release: str = VERSION
    store_id: StoreId | None = None
    offset: int = field(default=0, compare=False)
    problem: str | None = None
    parts: "tuple[Command, ...]" = ()

    def written_at(self, offset: int) -> "Command":
        """This command as it is read back: its offset is the id of the object that it creates."""
        return replace(self, offset=offset, parts=tuple(part.written_at(offset) for part in self.parts))


def encode_command(command: Command) -> tuple[bytes, bytes]:
    """The key and the value of a command's record."""
    value: dict[str, json_text.JsonValue] = {**_body(command), "release": command.release}
    if command.parts:
        value["commands"] = [{"id": str(part.id), **_body(part)} for part in command.parts]
    if command.store_id is not None:
        value["storeId"] = command.store_id
    return str(command.id).encode(), json_text.write(value)


def _body(command: Command) -> dict[str, json_text.JsonValue]:
    return {
        "statement": command.statement,
        "plan": None if command.plan is None else json_text.read(command.plan),
        "properties": dict(command.properties),
    }


def decode_command(key: bytes, value: bytes, *, offset: int = 0) -> Command:
    """The command of a record. Unknown properties are ignored; a record that is not a command gets a `problem`."""
    id_ = CommandId.parse(key.decode(errors="replace"))
    try:
        document = json_text.read(value)
    except PlanError as error:
        return Command(id=id_, statement="", offset=offset, problem=reason_of(error))
    if not isinstance(document, dict):
        return Command(id=id_, statement="", offset=offset, problem="the record is not a command")
    command = _read(id_, document, text_of(document.get("release")) or "", offset)
    documents = document.get("commands", [])
    parts = [_part(part, command) for part in documents] if isinstance(documents, list) else []
    problem = next((part.problem for part in parts if part.problem is not None), command.problem)
    if id_.type == CommandType.TRANSACTION and not parts:
        problem = "the transaction has no commands"
    store = text_of(document.get("storeId"))
    return replace(command, store_id=StoreId(store) if store else None, parts=tuple(parts), problem=problem)


def _read(id_: CommandId, document: dict[str, json_text.JsonValue], release: str, offset: int) -> Command:
    statement, plan = document.get("statement"), document.get("plan")
    if not isinstance(statement, str):
        return Command(id=id_, statement="", offset=offset, problem="the record is not a command")
    return Command(
        id=id_,
        statement=statement,
        plan=None if plan is None else json_text.write(plan),
        properties=_texts(document.get("properties")),
        release=release,
        offset=offset,
    )


def _part(document: json_text.JsonValue, transaction: Command) -> Command:
    """A command of a transaction, with the transaction's release and offset."""
    id_ = text_of(document.get("id")) if isinstance(document, dict) else None
    if not isinstance(document, dict) or id_ is None:
        return replace(transaction, problem="a command of the transaction cannot be read")
    return _read(CommandId.parse(id_), document, transaction.release, transaction.offset)


def hold_properties(hold: Hold) -> dict[str, str]:
    """A hold as properties of its command; its time is in the store."""
    on = json_text.write(list(hold.on)).decode()
    return {HOLD_ID: hold.id, HOLD_ON: on, HOLD_MAX_LAG: str(hold.max_lag_ms)}


def read_hold(command: Command) -> Hold:
    """The hold that a CREATE HOLD command describes."""
    properties = command.properties
    try:
        on = json_text.read(properties.get(HOLD_ON, "").encode())
        names = tuple(ObjectName(each) for each in on if isinstance(each, str)) if isinstance(on, list) else ()
        return Hold(
            id=HoldId(properties[HOLD_ID]),
            name=ObjectName(command.id.entity),
            on=names,
            max_lag_ms=int(properties[HOLD_MAX_LAG]),
            statement=command.statement,
        )
    except (PlanError, KeyError, ValueError) as error:
        raise PlanError("the command of the hold cannot be read") from error


def topic_properties(settings: TopicSettings) -> dict[str, str]:
    """The settings of a topic as properties of the command that creates it."""
    values = {
        PARTITIONS: settings.partitions,
        REPLICAS: settings.replicas,
        RETENTION_MS: settings.retention_ms,
        CLEANUP_POLICY: settings.cleanup_policy,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def reason_of(error: HoldfastError) -> str:
    return f"{error.message}. {error.detail}" if error.detail else error.message


def retain_property(retain_ms: int | None) -> dict[str, str]:
    """How long history is retained, as a property of a command; None is the default."""
    return {RETAIN_MS: "" if retain_ms is None else str(retain_ms)}


def retained_ms(command: Command) -> int | None:
    text = command.properties.get(RETAIN_MS, "")
    return int(text) if text.isdecimal() else None


def topic_settings(properties: Mapping[str, str]) -> TopicSettings:
    def number(name: str) -> int | None:
        text = properties.get(name, "")
        return int(text) if text.lstrip("-").isdecimal() else None

    policy = properties.get(CLEANUP_POLICY)
    return TopicSettings(number(PARTITIONS), number(REPLICAS), number(RETENTION_MS), policy)


def text_of(value: json_text.JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: json_text.JsonValue) -> Mapping[str, str]:
    """A map of strings; other values are converted to JSON text."""
    if not isinstance(value, dict):
        return NO_PROPERTIES
    return {name: item if isinstance(item, str) else json_text.write(item).decode() for name, item in value.items()}
