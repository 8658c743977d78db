"""Statements that change the catalog, and holds."""

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.commands import Commands, Done
from holdfast.coordinator.holds import Holds, HoldStatus
from holdfast.coordinator.requests import Requests
from holdfast.coordinator.system_tables import SystemTables
from holdfast.errors import HoldfastError
from holdfast.planner.draft import Draft
from holdfast.runtime.store.port import Time
from holdfast.service.permissions import Permissions
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bind.hold import BoundAdvanceHold
from holdfast.sql.syntax.parse import ParsedStatement
from holdfast.sql.syntax.statements import CreateHold

__all__ = ["Ddl", "Done", "HoldStatus"]

log = logging.getLogger(__name__)

T = TypeVar("T")

SHOWN_CHARACTERS = 80
"""Of a statement, in messages about waiting for it."""


class Ddl:
    """Changes the catalog between two ticks. Thread-safe."""

    def __init__(
        self,
        commands: Commands,
        holds: Holds,
        requests: Requests,
        system: SystemTables,
        wakeup: Wakeup,
        permissions: Permissions,
    ) -> None:
        self._commands, self._holds, self._requests, self._permissions = commands, holds, requests, permissions
        self._system, self._wakeup = system, wakeup

    @property
    def catalog(self) -> Catalog:
        return self._commands.catalog

    def execute(self, parsed: ParsedStatement, properties: Mapping[str, str]) -> Done:
        """Run one statement."""
        self._permissions.check(parsed.statement)
        if isinstance(parsed.statement, CreateHold):
            self._holds.await_built([name.text for name in parsed.statement.on])
        return self._change(
            shown(parsed.text), lambda: self._commands.execute(parsed.statement, parsed.text, properties)
        )

    def commit(self, draft: Draft) -> list[Done]:
        """Run the statements of a transaction: all of them or none."""
        for each in draft.statements:
            self._permissions.check(each.statement)
        self._holds.await_built(draft.planned(self.catalog, number=0).inputs)
        return self._change("COMMIT", lambda: self._commands.commit(draft))

    def advance_hold(self, bound: BoundAdvanceHold) -> Time:
        """Advance a hold; durable on return. Does not wait for a tick."""
        return self._holds.advance(bound.hold, bound.to)

    def holds(self) -> list[HoldStatus]:
        return self._holds.status()

    def _change(self, what: str, change: Callable[[], T]) -> T:
        def between_ticks() -> T:
            done = change()
            self._refresh_system_tables()
            return done

        done = self._requests.ask(what, between_ticks)
        # End subscriptions to dropped objects now, not at the next tick.
        self._wakeup.notify()
        return done

    def _refresh_system_tables(self) -> None:
        try:
            self._system.refresh()
        except HoldfastError as error:
            # The command is durable, so the statement has succeeded.
            log.warning("system tables not refreshed: error=%s", error)


def shown(statement: str) -> str:
    """A statement in a message about waiting for it: one line, and not all of a long one."""
    line = " ".join(statement.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"
