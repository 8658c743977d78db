"""What is known of the topics that queries read: their ids, and which of them are lost."""

from collections.abc import Mapping, Set

from holdfast.errors import HoldfastError
from holdfast.kafka.port import Topic, TopicProblem
from holdfast.names import TopicName
from holdfast.runtime.store.port import Store

RESUME = "Then PAUSE and RESUME the query; a table over the topic resumes by itself."
HINT = "To start over with the new topic, drop the queries and objects that read it and create them again."


class KnownTopics:
    """On the coordinator's thread, except `loss`. `lost` are topics that can no longer be read, each with the reason.

    A truncated topic stays lost after a restart: once it has grown past what was read, nothing else would show that
    records are missing. `refused` are topics that Kafka does not let this user read, until somebody changes that.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lost: dict[TopicName, str] = {
            TopicName(key.removeprefix("lost/")): reason for key, reason in store.facts("lost/").items()
        }
        self.refused: dict[TopicName, str] = {}

    @property
    def unreadable(self) -> Mapping[TopicName, str]:
        """The topics that cannot be read now, each with the reason."""
        return self.refused | self.lost

    def loss(self, topic: TopicName) -> str | None:
        """Why a topic is lost, with a hint. From any thread."""
        return self.lost.get(topic)

    def was_read(self, topic: TopicName) -> bool:
        """Whether a topic existed and was followed."""
        return self._store.get(f"topic/{topic}") is not None

    def compare(self, wanted: Set[TopicName], existing: Mapping[TopicName, Topic]) -> None:
        """Find the lost topics: those that are gone, or no longer have the id that they had."""
        for name in wanted:
            known, now = self._store.get(f"topic/{name}"), existing.get(name)
            if self._store.get(f"lost/{name}") is not None:
                continue
            if known is None or (now is not None and now.id == known):
                self.lost.pop(name, None)
            elif now is None:
                self.lost[name] = _with_hint(f'topic "{name}" was deleted (its id was {known})')
            else:
                self.lost[name] = recreated_reason(name, known, now.id)

    def learn(self, existing: Mapping[TopicName, Topic]) -> None:
        """Remember the ids of topics that are followed from now on."""
        for name, topic in existing.items():
            if not self.was_read(name):
                self._store.put(f"topic/{name}", topic.id)

    def truncate(self, topic: TopicName, reason: str) -> None:
        """Mark a topic as lost: it no longer has the next records to read."""
        self._store.put(f"lost/{topic}", _with_hint(reason))
        self.lost[topic] = _with_hint(reason)

    def refuse(self, problem: TopicProblem) -> None:
        """Mark a topic as one that cannot be read until somebody changes that."""
        self.refused[problem.topic] = refusal(problem)

    @staticmethod
    def is_refusal(reason: str | None) -> bool:
        """Whether a query failed because a topic was refused."""
        return reason is not None and reason.endswith(RESUME)

    def forget_all_but(self, used: Set[TopicName]) -> None:
        """Forget all other topics: a topic of the same name is then a new one."""
        for kind in ("topic", "lost"):
            for key in self._store.facts(f"{kind}/"):
                if TopicName(key.removeprefix(f"{kind}/")) not in used:
                    self._store.put(key, None)
        for name in self.lost.keys() - used:
            del self.lost[name]


def recreated_reason(topic: TopicName, known: str, now: str) -> str:
    """Why nothing reads a topic any more that has another id than before."""
    return _with_hint(f'topic "{topic}" was deleted and recreated (its id was {known}, now it is {now})')


def refusal(problem: TopicProblem) -> str:
    """The reason of a query that failed because a topic was refused, with the way to resume it."""
    hint = f"{problem.hint} {RESUME}" if problem.hint else RESUME
    return str(HoldfastError(problem.message, detail=problem.detail, hint=hint))


def _with_hint(reason: str) -> str:
    return reason if "HINT: " in reason else f"{reason}\nHINT: {HINT}"
