"""Topics that DROP … DELETE TOPIC deletes: also when the process dies between the command and the deletion.

What is to be deleted is remembered, with the topic's id, before the command is written. A start then finishes what was
begun: the topic goes if its object has gone, and if it is still the same topic.
"""

import json

from holdfast.catalog.snapshot import Catalog
from holdfast.kafka.admin import Admin
from holdfast.names import TopicName
from holdfast.runtime.store.port import Store

KEY = "topics/deleting"


class TopicDeletions:
    """On the coordinator's thread."""

    def __init__(self, store: Store, admin: Admin) -> None:
        self._store, self._admin = store, admin

    def intend(self, topic: TopicName) -> None:
        """Remember a topic; nothing is deleted yet."""
        known = self._admin.describe([topic]).get(topic)
        if known is not None:
            self._remember({**self._intended(), topic: known.id})

    def finish(self, catalog: Catalog) -> None:
        """Delete what was intended and no object reads any more; forget the rest."""
        intended = self._intended()
        if not intended:
            return
        used = catalog.topics
        there = self._admin.describe(intended)
        self._admin.delete(*(t for t, id_ in intended.items() if t not in used and t in there and there[t].id == id_))
        self._remember({})

    def _intended(self) -> dict[TopicName, str]:
        found: dict[TopicName, str] = json.loads(self._store.get(KEY) or "{}")
        return found

    def _remember(self, intended: dict[TopicName, str]) -> None:
        self._store.put(KEY, json.dumps(intended) if intended else None)
