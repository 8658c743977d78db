"""The statements of an open transaction: which may be combined, and the single command they become.

Each statement is bound over the catalog that results from those before it. COMMIT binds all of them again, because
the catalog may have changed in the meantime.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import assert_never

from holdfast.catalog.commands import Command
from holdfast.catalog.fold import apply
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import NotInTransaction, Position
from holdfast.names import ObjectName, StoreId, show
from holdfast.planner.commands import commands_for, transaction
from holdfast.sql.bind.create_as import BoundCreateAs
from holdfast.sql.bind.ddl import ddl_kind
from holdfast.sql.bind.ddl_kind import BoundDdl, TransactionRule
from holdfast.sql.bind.hold import BoundCreateHold
from holdfast.sql.bind.index import BoundCreateIndex
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.statement import bind
from holdfast.sql.properties.session import stored_properties
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.parse import ParsedStatement

MAX_STATEMENTS = 1_000
"""Statements per transaction: all of them become one record of the command topic."""
ALLOWED = "A transaction can read, or create one index or materialized view and a hold on it, or rename and drop holds."

Creating = sql.CreateAs | sql.CreateIndex
"""Statements that create an object which the same transaction can hold."""
Change = BoundDdl | BoundNothing
"""A bound statement of a transaction."""


@dataclass(frozen=True, slots=True)
class DraftStatement:
    """A statement of a transaction, with the session's properties at the time."""

    statement: sql.Statement
    text: str
    properties: Mapping[str, str]
    creates: ObjectName | None = None
    """The object that it creates, if the same transaction can hold it."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A transaction as it would be committed now: its statements bound, their commands, and the catalog after them."""

    bound: tuple[Change, ...]
    commands: tuple[Command, ...]
    after: Catalog

    @property
    def new_hold(self) -> BoundCreateHold | None:
        """The hold on the object that the transaction creates."""
        return next((each for each in self.bound if isinstance(each, BoundCreateHold)), None)

    @property
    def inputs(self) -> tuple[ObjectName, ...]:
        """The sources of the object that the transaction creates and holds."""
        created = self.after.held(self.new_hold.on[0].name) if self.new_hold is not None else None
        query = self.after.queries.get(created.query) if created is not None and created.query is not None else None
        return query.sources if query is not None else ()


@dataclass(frozen=True, slots=True)
class Draft:
    """The statements of a transaction so far."""

    statements: tuple[DraftStatement, ...] = ()

    def adding(
        self, parsed: ParsedStatement, properties: Mapping[str, str], catalog: Catalog
    ) -> "tuple[Draft, Change]":
        """The draft with one more statement, and that statement bound; raises if they cannot be combined."""
        self._check(parsed.statement, parsed.text)
        if isinstance(parsed.statement, sql.CreateHold) and parsed.statement.name is None:
            parsed = replace(parsed, statement=_named(parsed.statement, catalog))
        if len(self.statements) == MAX_STATEMENTS:
            raise NotInTransaction(
                f"a transaction can have at most {MAX_STATEMENTS} statements", position=parsed.statement.position
            )
        drafted = DraftStatement(parsed.statement, parsed.text, dict(properties))
        bound = Draft((*self.statements, drafted)).planned(catalog, number=0).bound[-1]
        if isinstance(bound, BoundNothing) and isinstance(parsed.statement, Creating):
            raise NotInTransaction(f"{bound.notice}, so this transaction would create nothing")
        return Draft((*self.statements, replace(drafted, creates=_created(bound)))), bound

    def check_whole(self) -> None:
        """Reject an incomplete transaction."""
        if self._created is not None and not self._holds:
            raise NotInTransaction(
                f'the transaction creates "{self._created}" without a hold on it',
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
        """The transaction over a catalog; `number` makes the ids of created objects unique."""
        bound: list[Change] = []
        commands: list[Command] = []
        for each in self.statements:
            result = bind(each.statement, catalog, each.properties)
            assert isinstance(result, Change)
            bound.append(result)
            if isinstance(result, BoundNothing):
                continue
            stored = stored_properties(each.properties)
            for command in commands_for(result, text=each.text, number=number, properties=stored, store_id=store_id):
                commands.append(command)
                catalog = apply(catalog, command.written_at(number))
        return Planned(tuple(bound), tuple(commands), catalog)

    def command(self, planned: Planned, store_id: StoreId | None) -> Command:
        """The transaction as one record of the command topic."""
        texts = "; ".join(each.text for each in self.statements)
        return transaction(planned.commands, f"BEGIN; {texts}; COMMIT;", store_id)

    def _check(self, statement: sql.Statement, text: str) -> None:
        if isinstance(statement, sql.AdvanceHold):
            raise NotInTransaction(
                "ALTER HOLD … ADVANCE cannot be run in a transaction",
                detail="Advancing a hold takes effect immediately and cannot be undone.",
                hint="Advance it outside a transaction.",
                position=statement.position,
            )
        if not isinstance(statement, sql.DdlStatement):
            raise _refused(text, statement.position)
        rule = ddl_kind(statement).transaction
        match rule:
            case TransactionRule.CREATES:
                self._check_create(statement, text)
            case TransactionRule.HOLDS:
                assert isinstance(statement, sql.CreateHold)
                self._check_hold(statement)
            case TransactionRule.CHANGES_HOLDS:
                if self._created is not None:
                    raise NotInTransaction(
                        f'a transaction that creates "{self._created}" can only create a hold on it',
                        position=statement.position,
                    )
            case TransactionRule.REFUSED:
                raise _refused(text, statement.position)
            case _:
                assert_never(rule)

    def _check_create(self, statement: sql.DdlStatement, text: str) -> None:
        if isinstance(statement, sql.CreateAs) and statement.kind is not sql.ObjectKind.MATERIALIZED_VIEW:
            raise _refused(text, statement.position)
        self._check_alone(statement.position)
        if isinstance(statement, sql.CreateAs) and statement.or_replace:
            raise NotInTransaction(
                "CREATE OR REPLACE cannot be run in a transaction",
                detail="A replaced object keeps its history.",
                hint="Drop the object first, and leave out OR REPLACE.",
                position=statement.position,
            )

    def _check_alone(self, position: Position | None) -> None:
        if self._created is not None:
            message = f'a transaction can create only one object, and this one creates "{self._created}"'
            raise NotInTransaction(message, position=position)
        if self.statements:
            raise NotInTransaction("a transaction that renames or drops holds cannot create objects", position=position)

    def _check_hold(self, statement: sql.CreateHold) -> None:
        if self._created is None:
            raise NotInTransaction(
                "CREATE HOLD in a transaction must follow the CREATE of its object",
                hint="Create the hold outside a transaction.",
                position=statement.position,
            )
        if self._holds:
            raise NotInTransaction("only one CREATE HOLD is allowed per transaction", position=statement.position)
        if [name.text for name in statement.on] != [self._created]:
            raise NotInTransaction(
                f'the hold of a transaction must be only on "{self._created}", which it creates',
                position=statement.on[0].position,
            )


def _created(bound: Change) -> ObjectName | None:
    """The object that a statement creates, if it can be held."""
    match bound:
        case BoundCreateAs(target=target):
            return target.name
        case BoundCreateIndex(name=name):
            return name
        case _:
            return None


def _named(statement: sql.CreateHold, catalog: Catalog) -> sql.CreateHold:
    """The hold, named after the object it holds, with a number if that name is taken."""
    first = f"{statement.on[0].text}_HOLD"
    names = chain([first], (f"{first}_{number}" for number in count(2)))
    free = next(name for name in names if not catalog.is_taken(name))
    return replace(statement, name=sql.Identifier(free, statement.position))


def _refused(text: str, position: Position | None) -> NotInTransaction:
    statement = " ".join(text.split(None, 2)[:2]).upper().rstrip(";")
    return NotInTransaction(f"{statement} cannot be run in a transaction", detail=ALLOWED, position=position)
