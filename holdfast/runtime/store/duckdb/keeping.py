"""Holds that outlive the process. Callers hold `writing`.

A hold is durable by an entry of the ledger, which also has every since: no order of crashes can leave a since beyond
a hold. While its entry is written it is held as a reader would, since `times` is not locked then.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from holdfast.errors import ReadError, StoreError
from holdfast.names import CollectionId, HoldId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.core import Core, unreadable
from holdfast.runtime.store.duckdb.ledger import Entry, kept_entry
from holdfast.runtime.store.port import Kept, Time


def keep(core: Core, hold: HoldId, on: Sequence[CollectionId], at: Time) -> None:
    kept = Kept(tuple(on), at)
    with _pinned(core, kept):
        core.write([kept_entry(hold, kept)])


def move(core: Core, moves: Mapping[HoldId, Time]) -> Mapping[HoldId, ReadError]:
    refused: dict[HoldId, ReadError] = {}
    entries: list[Entry] = []
    with ExitStack() as pinned:
        for hold, at in moves.items():
            if hold not in core.ledger.kept:
                raise StoreError(f"the store has no hold {hold}")
            kept = Kept(core.ledger.kept[hold].on, at)
            try:
                pinned.enter_context(_pinned(core, kept))
            except ReadError as error:
                refused[hold] = error
            else:
                entries.append(kept_entry(hold, kept))
        if entries:
            core.write(entries)
    return refused


def drop(core: Core, holds: Sequence[HoldId]) -> None:
    entries = [Entry("let_go", hold) for hold in holds if hold in core.ledger.kept]
    if entries:
        core.write(entries)


@contextmanager
def _pinned(core: Core, kept: Kept) -> Iterator[None]:
    """Nobody moves a since beyond the time in the block."""
    with core.times:
        for id_ in kept.on:
            found = core.objects.collection(id_)
            if not laws.is_keepable(found.frontier, found.history_from, kept.at):
                raise unreadable(id_, kept.at, found.frontier)
        tokens = [core.holds.take(id_, kept.at) for id_ in kept.on]
    try:
        yield
    finally:
        with core.times:
            for token in tokens:
                core.holds.release(token)
