"""Barriers: up to which time a derived stream may be published, while a query that stopped there has no position yet.

A query over a derived stream takes the rows of the tick, not the records of the topic. When it stops, its position in
the topic is where the topic ends once everything up to its last tick is published, and nothing after it.
"""

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass

from holdfast.names import QueryId, TopicName
from holdfast.runtime.store.port import Store, Time

SUFFIX = "/barrier"


@dataclass(frozen=True, slots=True)
class Barrier:
    """The last tick of a query that stopped, and the topics of the streams that it reads."""

    time: Time
    topics: frozenset[TopicName]


class Barriers:
    """Stored as facts of their queries. Changed on the coordinator's thread; `by_topic` from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._barriers: dict[QueryId, Barrier] = {}
        for key, text in store.facts("").items():
            if key.endswith(SUFFIX) and text.startswith("{"):  # And no fact of a topic named "barrier".
                fields = json.loads(text)
                topics = frozenset(map(TopicName, fields["topics"]))
                self._barriers[QueryId(key.removesuffix(SUFFIX))] = Barrier(Time(fields["time"]), topics)

    def __contains__(self, query: QueryId) -> bool:
        return query in self._barriers

    def all(self) -> Mapping[QueryId, Barrier]:
        return dict(self._barriers)

    def by_topic(self) -> Mapping[TopicName, Time]:
        """The time up to which each topic may be published; no time for topics without a barrier."""
        found: dict[TopicName, Time] = {}
        for barrier in list(self._barriers.values()):
            for topic in barrier.topics:
                found[topic] = min(barrier.time, found.get(topic, barrier.time))
        return found

    def put(self, query: QueryId, time: Time, topics: Set[TopicName]) -> None:
        """Durable on return. Before the tick that leaves the query out is committed."""
        self._store.put(f"{query}{SUFFIX}", json.dumps({"time": time, "topics": sorted(topics)}))
        self._barriers[query] = Barrier(time, frozenset(topics))

    def remove(self, query: QueryId) -> None:
        if self._barriers.pop(query, None) is not None:
            self._store.put(f"{query}{SUFFIX}", None)
