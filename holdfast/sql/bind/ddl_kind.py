"""Declaration of a kind of DDL statement: its binder, its command and its message to the user."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Generic, TypeVar

from holdfast.catalog.commands import CommandId
from holdfast.catalog.objects import NO_PROPERTIES
from holdfast.catalog.snapshot import Catalog
from holdfast.runtime.plan.ddl import DdlCommand
from holdfast.sql.bind.nothing import BoundNothing

S = TypeVar("S")
B = TypeVar("B", bound="BoundDdl")


class BoundDdl:
    """A bound statement that changes the catalog: it becomes a command."""

    __slots__ = ()


class BoundPlan(BoundDdl):
    """A bound DDL statement whose command has a plan."""

    __slots__ = ()


class Privilege(StrEnum):
    """A privilege that a role needs to run a statement."""

    CREATE = "CREATE"
    """On the schema."""
    SELECT = "SELECT"
    """On every object that the statement reads."""
    INSERT = "INSERT"
    """On the object that the statement writes to."""
    USAGE = "USAGE"
    """On the clusters that compute or store the result."""
    OWNER = "OWNER"
    """Ownership of the object that the statement changes."""


class TransactionRule(Enum):
    """Whether a statement is allowed in a transaction."""

    REFUSED = auto()
    CREATES = auto()
    """Allowed once, for an index or a materialized view; the transaction must then create a hold on it."""
    HOLDS = auto()
    """Allowed on the object that the transaction has created."""
    CHANGES_HOLDS = auto()
    """Allowed if the transaction creates nothing."""


def _no_properties(_: object) -> Mapping[str, str]:
    return NO_PROPERTIES


def _no_notices(_: object) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlKind(Generic[S, B]):
    """One kind of DDL statement."""

    statement: type[S]
    bound: type[B]
    bind: Callable[[S, Catalog, Mapping[str, str]], B | BoundNothing]
    id: Callable[[B], CommandId]
    message: Callable[[B], str]
    """The message that the user sees on success."""
    privileges: tuple[Privilege, ...]
    transaction: TransactionRule = TransactionRule.REFUSED
    command: Callable[[B, str], DdlCommand | None] | None = None
    """The DDL command of its plan, built with the statement's text; None if the statement's command has no plan."""
    properties: Callable[[B], Mapping[str, str]] = _no_properties
    """Properties of its command in addition to the plan."""
    notices: Callable[[B], Sequence[str]] = _no_notices
    """Warnings shown when the statement succeeds."""
