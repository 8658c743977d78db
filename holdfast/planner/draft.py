"""What a transaction has been told to change: which statements go together, and the one command that they become.

Every statement is bound over the catalog as those before it leave it. On COMMIT that is done again, since others may
have changed the catalog meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.catalog.commands import Command, CommandAction, CommandId, CommandType, apply
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import NotInTransaction, Position
from holdfast.names import StoreId
from holdfast.planner.commands import OfHolds, commands_for
from holdfast.planner.plan import Plannable
from holdfast.sql import statements as sql
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundNothing
from holdfast.sql.parse import ParsedStatement
from holdfast.sql.session import KEPT

MOST = 1_000
"""Statements of a transaction: they are one record of the command topic."""
WHAT_IT_MAY = (
    "A transaction reads, or creates one index or materialized view and a hold on it, or renames and drops holds."
)

Changing = Plannable | OfHolds | BoundNothing
"""What a statement of a transaction becomes when it is bound."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A statement of a transaction, with the session's properties when it came."""

    statement: sql.Statement
    text: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Planned:
    """A transaction as it would be committed now: its statements bound, their commands, and the catalog after them."""

    bound: tuple[Changing, ...]
    commands: tuple[Command, ...]
    after: Catalog


@dataclass(frozen=True, slots=True)
class Draft:
    """The statements of a transaction so far."""

    statements: tuple[Drafted, ...] = ()

    def adding(
        self, parsed: ParsedStatement, properties: Mapping[str, str], catalog: Catalog
    ) -> "tuple[Draft, Changing]":
        """This with one more, and that one bound; an error when it does not go with those that are here."""
        self._check(parsed.statement, parsed.text)
        if len(self.statements) == MOST:
            raise NotInTransaction(f"a transaction can have {MOST} statements", position=parsed.statement.position)
        added = Draft((*self.statements, Drafted(parsed.statement, parsed.text, dict(properties))))
        return added, added.planned(catalog, number=0).bound[-1]

    def check_whole(self) -> None:
        """Refuse to commit what lacks something."""

    def planned(self, catalog: Catalog, *, number: int, store_id: StoreId | None = None) -> Planned:
        """The transaction over a catalog; `number` makes the ids of what it creates unique."""
        bound: list[Changing] = []
        commands: list[Command] = []
        for each in self.statements:
            made = bind(each.statement, catalog, each.properties)
            assert isinstance(made, Changing)
            bound.append(made)
            if isinstance(made, BoundNothing):
                continue
            kept = {name: value for name, value in each.properties.items() if name in KEPT}
            for command in commands_for(made, text=each.text, number=number, properties=kept, store_id=store_id):
                commands.append(command)
                catalog = apply(catalog, command)
        return Planned(tuple(bound), tuple(commands), catalog)

    def command(self, planned: Planned, store_id: StoreId | None) -> Command:
        """The one record of the transaction."""
        words = "; ".join(each.text for each in self.statements)
        id_ = CommandId(CommandType.TRANSACTION, planned.commands[0].id.entity, CommandAction.EXECUTE)
        parts = tuple(replace(command, store_id=None) for command in planned.commands)
        return Command(id=id_, statement=f"BEGIN; {words}; COMMIT;", parts=parts, store_id=store_id)

    def _check(self, statement: sql.Statement, text: str) -> None:
        match statement:
            case sql.RenameHold() | sql.DropHold():
                return
            case sql.CreateHold():
                raise NotInTransaction(
                    "CREATE HOLD in a transaction must follow the CREATE of what it holds",
                    hint="Create the hold outside of a transaction.",
                    position=statement.position,
                )
            case sql.AdvanceHold():
                raise NotInTransaction(
                    "ALTER HOLD … ADVANCE cannot be run in a transaction",
                    detail="A hold is moved at once, and cannot be moved back.",
                    hint="Move it outside of a transaction.",
                    position=statement.position,
                )
            case _:
                raise _refused(text, statement.position)


def _refused(text: str, position: Position | None) -> NotInTransaction:
    words = " ".join(text.split(None, 2)[:2]).upper().rstrip(";")
    return NotInTransaction(f"{words} cannot be run in a transaction", detail=WHAT_IT_MAY, position=position)
