"""Times that readers of this process keep readable."""

from itertools import count

from holdfast.names import CollectionId
from holdfast.runtime.store.port import Time


class Holds:
    """Callers hold the lock of the times."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._held: dict[int, tuple[CollectionId, Time]] = {}

    def take(self, collection: CollectionId, at: Time) -> int:
        token = next(self._tokens)
        self._held[token] = (collection, at)
        return token

    def release(self, token: int) -> None:
        self._held.pop(token, None)

    def on(self, collection: CollectionId) -> list[Time]:
        return [at for held, at in self._held.values() if held == collection]

    def forget(self, collection: CollectionId) -> None:
        self._held = {token: held for token, held in self._held.items() if held[0] != collection}
