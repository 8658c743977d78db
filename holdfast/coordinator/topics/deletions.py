"""Topics that DROP … DELETE TOPIC deletes, even when the process dies between the command and the deletion.

The topic and its id are stored before the command is written. The next start finishes the deletion: the topic is
deleted if no object uses it any more, and if it is still the same topic.
"""

import json

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import HoldfastError
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

    def finish(self, catalog: Catalog) -> HoldfastError | None:
        """Delete the stored topics that no object uses any more; returns why one could not be deleted yet.

        The other topics that are stored are forgotten.
        """
        intended = self._intended()
        if not intended:
            return None
        unused = {topic: id_ for topic, id_ in intended.items() if topic not in catalog.topics}
        described = self._admin.describe_each(unused)
        problems: dict[TopicName, HoldfastError] = dict(described.problems)
        for topic, found in described.found.items():
            if found.id == unused[topic]:
                try:
                    self._admin.delete(topic)
                except HoldfastError as error:
                    problems[topic] = error
        self._store_intended({topic: unused[topic] for topic in problems})
        return next(iter(problems.values()), None)

    def intended(self) -> set[TopicName]:
        """The topics that are to be deleted."""
        return set(self._intended())

    def _intended(self) -> dict[TopicName, str]:
        found: dict[TopicName, str] = json.loads(self._store.get(KEY) or "{}")
        return found

    def _store_intended(self, intended: dict[TopicName, str]) -> None:
        self._store.put(KEY, json.dumps(intended) if intended else None)
