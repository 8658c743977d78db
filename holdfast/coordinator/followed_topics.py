"""What is known of the topics that are read: that they are still the ones they were, and which are lost."""

from collections.abc import Mapping, Set

from holdfast.kafka.admin import Topic
from holdfast.names import TopicName
from holdfast.runtime.store.port import Store

HINT = "To start over with the new topic, drop the queries and objects that read it and create them again."


class FollowedTopics:
    """On the coordinator's thread. `lost` are topics that can be read no more, each with the reason.

    A topic that was truncated stays lost over a restart: when it has grown past what was read, nothing else would tell
    that records are missing.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lost: dict[TopicName, str] = {
            TopicName(key.removeprefix("lost/")): reason for key, reason in store.facts("lost/").items()
        }

    def was_read(self, topic: TopicName) -> bool:
        """Whether a topic was there and followed."""
        return self._store.get(f"topic/{topic}") is not None

    def compare(self, wanted: Set[TopicName], there: Mapping[TopicName, Topic]) -> None:
        """Find what is lost: a topic that is gone, or has not the id that it had."""
        for name in wanted:
            known, now = self._store.get(f"topic/{name}"), there.get(name)
            if self._store.get(f"lost/{name}") is not None:
                continue
            if known is None or (now is not None and now.id == known):
                self.lost.pop(name, None)
            elif now is None:
                self.lost[name] = _told(f'topic "{name}" was deleted (its id was {known})')
            else:
                said = f'topic "{name}" was deleted and made anew (its id was {known}, now it is {now.id})'
                self.lost[name] = _told(said)

    def learn(self, there: Mapping[TopicName, Topic]) -> None:
        """Remember the ids of topics that are followed from now on."""
        for name, topic in there.items():
            if not self.was_read(name):
                self._store.put(f"topic/{name}", topic.id)

    def truncated(self, topic: TopicName, reason: str) -> None:
        """A topic no longer has what was to be read next."""
        self._store.put(f"lost/{topic}", _told(reason))
        self.lost[topic] = _told(reason)

    def forget_all_but(self, kept: Set[TopicName]) -> None:
        """Know nothing of topics that nobody reads: one of the same name is then another one."""
        for kind in ("topic", "lost"):
            for key in self._store.facts(f"{kind}/"):
                if TopicName(key.removeprefix(f"{kind}/")) not in kept:
                    self._store.put(key, None)
        for name in self.lost.keys() - kept:
            del self.lost[name]


def _told(reason: str) -> str:
    return reason if "HINT: " in reason else f"{reason}\nHINT: {HINT}"
