"""Topics that DROP … DELETE TOPIC deletes, even when the process dies between the command and the deletion.

The topic and its id are stored before the command is written. The next start finishes the deletion: the topic is
deleted if no object uses it any more, and if it is still the same topic.
"""

import json

from holdfast.catalog.snapshot import Catalog
from holdfast.kafka.port import TopicAdmin
from holdfast.names import TopicName
from holdfast.runtime.store.port import Store

KEY = "topics/deleting"


class TopicDeletions:
    """On the coordinator's thread."""

    def __init__(self, store: Store, admin: TopicAdmin) -> None:
        self._store, self._admin = store, admin

    def intend(self, topic: TopicName) -> None:
        """Store that a topic is to be deleted; nothing is deleted yet."""
        known = self._admin.describe([topic]).get(topic)
        if known is not None:
            self._store_intended({**self._intended(), topic: known.id})

    def finish(self, catalog: Catalog) -> None:
        """Delete the stored topics that no object uses any more; forget the others."""
        intended = self._intended()
        if not intended:
            return
        used = catalog.topics
        existing = self._admin.describe(intended)
        self._admin.delete(
            *(t for t, id_ in intended.items() if t not in used and t in existing and existing[t].id == id_)
        )
        self._store_intended({})

    def intended(self) -> set[TopicName]:
        """The topics that are to be deleted."""
        return set(self._intended())

    def _intended(self) -> dict[TopicName, str]:
        found: dict[TopicName, str] = json.loads(self._store.get(KEY) or "{}")
        return found

    def _store_intended(self, intended: dict[TopicName, str]) -> None:
        self._store.put(KEY, json.dumps(intended) if intended else None)
