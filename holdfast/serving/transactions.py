"""Transactions: several queries at one pinned time, or several DDL statements committed together.

The first statement decides which. Changes are collected in a draft, which is invisible before COMMIT; if one of its
statements fails, the whole transaction fails.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock, Timer
from uuid import uuid4

from holdfast.catalog.objects import Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    FailedTransaction,
    HoldfastError,
    NotInTransaction,
    NoTransaction,
    NotSupported,
    ReadError,
    ReadOnlyTransaction,
    RolledBack,
)
from holdfast.names import CollectionId
from holdfast.planner.draft import Change, Draft
from holdfast.runtime.store.port import Store, Time
from holdfast.serving.time.read_times import Times
from holdfast.sql.literals.moment import BoundAsOf, Moment
from holdfast.sql.syntax.parse import ParsedStatement

MAX_OPEN = 1_000
"""Limit of open transactions: each pins history."""


@dataclass
class _Transaction:
    read_only: bool = False
    draft: Draft = field(default_factory=Draft)
    failed: str | None = None
    time: Time | None = None
    tokens: list[int] = field(default_factory=list)
    timer: Timer | None = None
    lock: Lock = field(default_factory=Lock)


class Transactions:
    """The open transactions. Thread-safe. A transaction that is idle for too long is closed."""

    def __init__(
        self, store: Store, times: Times, tables: Callable[[], Sequence[Table]], *, idle_seconds: float
    ) -> None:
        self._store, self._times, self._tables, self._idle = store, times, tables, idle_seconds
        self._open: dict[str, _Transaction] = {}
        self._lock = Lock()

    def begin(self, *, read_only: bool = False) -> str:
        """Open a transaction; returns its id."""
        id_ = f"TX_{uuid4().hex[:16]}".upper()
        with self._lock:
            if len(self._open) >= MAX_OPEN:
                raise NotSupported(
                    f"too many open transactions: the limit is {MAX_OPEN}", hint="End one with COMMIT or ROLLBACK."
                )
            self._open[id_] = _Transaction(read_only)
        self._restart_timer(id_)
        return id_

    def as_of(self, id_: str, tables: Sequence[Table], wanted: BoundAsOf | None) -> BoundAsOf:
        """The time to read at. The first query chooses it, and from then on every table is pinned there."""
        found = self._find(id_)
        with found.lock:
            _check_alive(found)
            if found.draft.statements:
                raise NotInTransaction(
                    "a transaction with DDL statements cannot run queries",
                    hint="End it with COMMIT or ROLLBACK first.",
                )
            if found.time is None:
                with self._times.reading(tables, wanted) as choice:
                    self._pin_all(found, choice.time)
            elif wanted is not None:
                raise NotSupported(
                    "AS OF cannot be used after the first query of a transaction",
                    detail=f"All its queries read as of {found.time}.",
                    position=wanted.moment.position,
                )
            time = found.time
        assert time is not None
        self._restart_timer(id_)
        return BoundAsOf(Moment(time))

    def change(self, id_: str, parsed: ParsedStatement, properties: Mapping[str, str], catalog: Catalog) -> Change:
        """Add a statement to the draft of a transaction; returns the bound statement."""
        found = self._find(id_)
        with found.lock:
            _check_alive(found)
            if found.read_only or found.time is not None:
                raise ReadOnlyTransaction(
                    f"{parsed.text.split(None, 1)[0].upper()} cannot be run in a read-only transaction",
                    hint="End it with COMMIT first.",
                    position=parsed.statement.position,
                )
            try:
                found.draft, bound = found.draft.adding(parsed, properties, catalog)
            except HoldfastError as error:
                found.failed = error.message
                raise
        self._restart_timer(id_)
        return bound

    def fail(self, id_: str, reason: str) -> None:
        """Fail a transaction unless it only reads: the statement that failed may have been a change."""
        found = self._open.get(id_)
        if found is not None and not found.read_only and found.time is None:
            found.failed = found.failed or reason

    def end(self, id_: str, *, commits: bool = True) -> Draft:
        """End a transaction and release its pins; returns the changes to apply."""
        found = self._find(id_)
        self._close(id_)
        with found.lock:
            if not commits:
                return Draft()
            if found.failed is not None:
                raise RolledBack(
                    "the transaction was rolled back because one of its statements failed",
                    detail=f"The first error was: {found.failed}.",
                    hint="Start a new one with BEGIN.",
                )
            found.draft.check_whole()
            return found.draft

    def check(self, id_: str) -> None:
        """Raise if no open transaction has the id."""
        self._find(id_)

    def close_all(self) -> None:
        for id_ in list(self._open):
            self._close(id_)

    def _find(self, id_: str) -> _Transaction:
        found = self._open.get(id_)
        if found is None:
            raise NoTransaction(
                f'there is no transaction "{id_}"',
                detail=f"It has ended, or timed out after {self._idle:g} idle seconds.",
                hint="Start a new one with BEGIN.",
            )
        return found

    def _pin_all(self, found: _Transaction, time: Time) -> None:
        for table in self._tables():
            # A table that is not readable at this time stays unreadable in the transaction.
            with suppress(ReadError):
                found.tokens.append(self._store.pin(CollectionId(table.name), time))
        found.time = time

    def _restart_timer(self, id_: str) -> None:
        with self._lock:
            found = self._open.get(id_)
            if found is None:
                return
            if found.timer is not None:
                found.timer.cancel()
            found.timer = Timer(self._idle, self._close, [id_])
            found.timer.daemon = True
            found.timer.start()

    def _close(self, id_: str) -> None:
        with self._lock:
            found = self._open.pop(id_, None)
        if found is None:
            return
        if found.timer is not None:
            found.timer.cancel()
        with found.lock:
            for token in found.tokens:
                self._store.unpin(token)


def _check_alive(found: _Transaction) -> None:
    if found.failed is not None:
        raise FailedTransaction(
            "the transaction has failed; only ROLLBACK is allowed",
            detail=f"The first error was: {found.failed}.",
        )
