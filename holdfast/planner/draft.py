"""What a transaction has been told to change: which statements go together, and the one command that they become.

Every statement is bound over the catalog as those before it leave it. On COMMIT that is done again, since others may
have changed the catalog meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, count

from holdfast.catalog.commands import Command, apply
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import NotInTransaction, Position
from holdfast.names import ObjectName, StoreId, show
from holdfast.planner.commands import OfHolds, commands_for, transaction
from holdfast.planner.plan import Plannable
from holdfast.sql import statements as sql
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundCreateAs, BoundNothing
from holdfast.sql.bound_hold import BoundCreateHold
from holdfast.sql.bound_index import BoundCreateIndex
from holdfast.sql.parse import ParsedStatement
from holdfast.sql.session import KEPT

MOST = 1_000
"""Statements of a transaction: they are one record of the command topic."""
WHAT_IT_MAY = (
    "A transaction reads, or creates one index or materialized view and a hold on it, or renames and drops holds."
)

Creating = sql.CreateAs | sql.CreateIndex
"""Statements that create what can be held in the same transaction."""
Changing = Plannable | OfHolds | BoundNothing
"""What a statement of a transaction becomes when it is bound."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A statement of a transaction, with the session's properties when it came."""

    statement: sql.Statement
    text: str
    properties: Mapping[str, str]
    creates: ObjectName | None = None
    """The object that it creates, when that is to be held in the same transaction."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A transaction as it would be committed now: its statements bound, their commands, and the catalog after them."""

    bound: tuple[Changing, ...]
    commands: tuple[Command, ...]
    after: Catalog

    @property
    def new_hold(self) -> BoundCreateHold | None:
        """The hold on what the transaction creates."""
        return next((each for each in self.bound if isinstance(each, BoundCreateHold)), None)

    @property
    def inputs(self) -> tuple[ObjectName, ...]:
        """What the object that the transaction creates and holds is computed from."""
        made = self.after.held(self.new_hold.on[0].name) if self.new_hold is not None else None
        query = self.after.queries.get(made.query) if made is not None and made.query is not None else None
        return query.sources if query is not None else ()


@dataclass(frozen=True, slots=True)
class Draft:
    """The statements of a transaction so far."""

    statements: tuple[Drafted, ...] = ()

    def adding(
        self, parsed: ParsedStatement, properties: Mapping[str, str], catalog: Catalog
    ) -> "tuple[Draft, Changing]":
        """This with one more, and that one bound; an error when it does not go with those that are here."""
        self._check(parsed.statement, parsed.text)
        if isinstance(parsed.statement, sql.CreateHold) and parsed.statement.name is None:
            parsed = replace(parsed, statement=_named(parsed.statement, catalog))
        if len(self.statements) == MOST:
            raise NotInTransaction(f"a transaction can have {MOST} statements", position=parsed.statement.position)
        drafted = Drafted(parsed.statement, parsed.text, dict(properties))
        bound = Draft((*self.statements, drafted)).planned(catalog, number=0).bound[-1]
        if isinstance(bound, BoundNothing) and isinstance(parsed.statement, Creating):
            raise NotInTransaction(f"{bound.notice}, so that this transaction would create nothing")
        return Draft((*self.statements, replace(drafted, creates=_created(bound)))), bound

    def check_whole(self) -> None:
        """Refuse to commit what lacks something."""
        if self._created is not None and not self._holds:
            raise NotInTransaction(
                f'the transaction creates "{self._created}" and does not hold it',
                hint=f"Write CREATE HOLD ON {show(self._created)}; before COMMIT, or leave out BEGIN and COMMIT.",
            )

    @property
    def _created(self) -> ObjectName | None:
        """The object that the transaction creates."""
        return next((each.creates for each in self.statements if each.creates is not None), None)

    @property
    def _holds(self) -> bool:
        return any(isinstance(each.statement, sql.CreateHold) for each in self.statements)

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
        return transaction(planned.commands, f"BEGIN; {words}; COMMIT;", store_id)

    def _check(self, statement: sql.Statement, text: str) -> None:
        match statement:
            case sql.RenameHold() | sql.DropHold():
                if self._created is not None:
                    raise NotInTransaction(
                        f'a transaction that creates "{self._created}" holds it and does nothing else',
                        position=statement.position,
                    )
            case sql.CreateHold():
                self._check_hold(statement)
            case sql.CreateAs(kind="MATERIALIZED VIEW"):
                self._check_create(statement.position)
                if statement.or_replace:
                    raise NotInTransaction(
                        "CREATE OR REPLACE cannot be run in a transaction",
                        detail="What is replaced keeps the history that it has.",
                        hint="Drop what is there before, and leave out OR REPLACE.",
                        position=statement.position,
                    )
            case sql.CreateIndex():
                self._check_create(statement.position)
            case sql.AdvanceHold():
                raise NotInTransaction(
                    "ALTER HOLD … ADVANCE cannot be run in a transaction",
                    detail="A hold is moved at once, and cannot be moved back.",
                    hint="Move it outside of a transaction.",
                    position=statement.position,
                )
            case _:
                raise _refused(text, statement.position)

    def _check_create(self, position: Position | None) -> None:
        if self._created is not None:
            message = f'a transaction creates one object, and this one creates "{self._created}"'
            raise NotInTransaction(message, position=position)
        if self.statements:
            raise NotInTransaction("a transaction that renames or drops holds creates nothing", position=position)

    def _check_hold(self, statement: sql.CreateHold) -> None:
        if self._created is None:
            raise NotInTransaction(
                "CREATE HOLD in a transaction must follow the CREATE of what it holds",
                hint="Create the hold outside of a transaction.",
                position=statement.position,
            )
        if self._holds:
            raise NotInTransaction("a transaction has one CREATE HOLD", position=statement.position)
        if [name.text for name in statement.on] != [self._created]:
            raise NotInTransaction(
                f'the hold of a transaction must be on "{self._created}", which it creates, and on nothing else',
                position=statement.on[0].position,
            )


def _created(bound: Changing) -> ObjectName | None:
    """What a statement creates that can be held."""
    match bound:
        case BoundCreateAs(target=target):
            return target.name
        case BoundCreateIndex(name=name):
            return name
        case _:
            return None


def _named(statement: sql.CreateHold, catalog: Catalog) -> sql.CreateHold:
    """The hold with the name of what it holds, and a number when that is taken."""
    first = f"{statement.on[0].text}_HOLD"
    names = chain([first], (f"{first}_{number}" for number in count(2)))
    free = next(name for name in names if not catalog.is_taken(name))
    return replace(statement, name=sql.Identifier(free, statement.position))


def _refused(text: str, position: Position | None) -> NotInTransaction:
    words = " ".join(text.split(None, 2)[:2]).upper().rstrip(";")
    return NotInTransaction(f"{words} cannot be run in a transaction", detail=WHAT_IT_MAY, position=position)
