"""Transactions: several queries at one time, which is held until the last of them was answered; or several statements
that change the catalog together.

The first statement decides which of both it is. What is to be changed is kept as a draft, of which nothing is seen
before COMMIT; when a statement of it fails, all of it has.
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
from holdfast.planner.draft import Changing, Draft
from holdfast.runtime.store.port import Store, Time
from holdfast.serving.times import Times
from holdfast.sql.moments import BoundAsOf, Moment
from holdfast.sql.parse import ParsedStatement

MOST = 1_000
"""Transactions that can be open: each keeps history."""


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
    """The transactions that are open. From any thread. One that is idle for too long ends by itself."""

    def __init__(
        self, store: Store, times: Times, tables: Callable[[], Sequence[Table]], *, idle_seconds: float
    ) -> None:
        self._store, self._times, self._tables, self._idle = store, times, tables, idle_seconds
        self._open: dict[str, _Transaction] = {}
        self._lock = Lock()

    def begin(self, *, read_only: bool = False) -> str:
        """Open a transaction; gives its id."""
        id_ = f"TX_{uuid4().hex[:16]}".upper()
        with self._lock:
            if len(self._open) >= MOST:
                raise NotSupported(f"{MOST} transactions are open, and there can be no more", hint="End some of them.")
            self._open[id_] = _Transaction(read_only)
        self._wind(id_)
        return id_

    def as_of(self, id_: str, tables: Sequence[Table], wanted: BoundAsOf | None) -> BoundAsOf:
        """The time to read at. The first query decides it, and from then on every table is held there."""
        found = self._find(id_)
        with found.lock:
            _check_alive(found)
            if found.draft.statements:
                raise NotInTransaction(
                    "a transaction that changes something does not read",
                    hint="End it with COMMIT or ROLLBACK first.",
                )
            if found.time is None:
                with self._times.reading(tables, wanted) as choice:
                    self._hold_all(found, choice.time)
            elif wanted is not None:
                raise NotSupported(
                    "AS OF cannot be used after the first query of a transaction",
                    detail=f"Its queries are all answered as of {found.time}.",
                    position=wanted.moment.position,
                )
            time = found.time
        assert time is not None
        self._wind(id_)
        return BoundAsOf(Moment(time))

    def change(self, id_: str, parsed: ParsedStatement, properties: Mapping[str, str], catalog: Catalog) -> Changing:
        """Add a statement to the draft of a transaction; gives it bound."""
        found = self._find(id_)
        with found.lock:
            _check_alive(found)
            if found.read_only or found.time is not None:
                raise ReadOnlyTransaction(
                    f"{parsed.text.split(None, 1)[0].upper()} cannot be run in a transaction, which only reads",
                    hint="End it with COMMIT first.",
                    position=parsed.statement.position,
                )
            try:
                found.draft, bound = found.draft.adding(parsed, properties, catalog)
            except HoldfastError as error:
                found.failed = error.message
                raise
        self._wind(id_)
        return bound

    def fail(self, id_: str, reason: str) -> None:
        """Have one that is not known to read change nothing: what was wrong may have been a part of it."""
        found = self._open.get(id_)
        if found is not None and not found.read_only and found.time is None:
            found.failed = found.failed or reason

    def end(self, id_: str, *, commits: bool = True) -> Draft:
        """Let go of what it holds; gives what is to be changed now."""
        found = self._find(id_)
        self._close(id_)
        with found.lock:
            if not commits:
                return Draft()
            if found.failed is not None:
                raise RolledBack(
                    "the transaction is rolled back, because a statement of it has failed",
                    detail=f"The first error was: {found.failed}.",
                    hint="Start another one with BEGIN.",
                )
            found.draft.check_whole()
            return found.draft

    def check(self, id_: str) -> None:
        """Refuse an id that is not that of an open transaction."""
        self._find(id_)

    def close_all(self) -> None:
        for id_ in list(self._open):
            self._close(id_)

    def _find(self, id_: str) -> _Transaction:
        found = self._open.get(id_)
        if found is None:
            raise NoTransaction(
                f'there is no transaction "{id_}"',
                detail=f"It was ended, or nothing was asked of it for {self._idle:g} seconds.",
                hint="Start another one with BEGIN.",
            )
        return found

    def _hold_all(self, found: _Transaction, time: Time) -> None:
        for table in self._tables():
            # What cannot be read at that time now cannot be read in the transaction either.
            with suppress(ReadError):
                found.tokens.append(self._store.hold(CollectionId(table.name), time))
        found.time = time

    def _wind(self, id_: str) -> None:
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
                self._store.release(token)


def _check_alive(found: _Transaction) -> None:
    if found.failed is not None:
        raise FailedTransaction(
            "the transaction has failed, and nothing but ROLLBACK can follow",
            detail=f"The first error was: {found.failed}.",
        )
