"""The topics of the Kafka cluster, as clients see them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import UnknownObject
from holdfast.kafka.port import Kafka, Topic
from holdfast.kafka.tail import TopicTail
from holdfast.names import TopicName, show
from holdfast.service.assertions import assert_topic
from holdfast.sql.bind.assert_topic import BoundAssertTopic
from holdfast.sql.syntax.statements import Print
from holdfast.wall_clock import WallClock


class Topics:
    """Lists, prints and asserts topics. Thread-safe."""

    def __init__(self, kafka: Kafka, catalog: Callable[[], Catalog], clock: WallClock) -> None:
        self._kafka, self._admin, self._catalog, self._clock = kafka, kafka.topics, catalog, clock

    def names(self) -> Sequence[TopicName]:
        return self._admin.topics()

    def describe(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        """Describe the named topics that exist, as far as Kafka lets this user."""
        return self._admin.describe_each(names).found

    def readers(self) -> Mapping[TopicName, tuple[int, int]]:
        """The number of consumers and of groups that read each topic now."""
        return self._admin.readers()

    def print(self, statement: Print) -> TopicTail:
        """The records of a topic as they arrive; the caller closes it."""
        try:
            return TopicTail(self._kafka, TopicName(statement.topic), from_beginning=statement.from_beginning)
        except UnknownObject as error:
            error.position = statement.topic_position
            named = self._catalog().find(statement.topic.upper())
            if named is not None and named.topic is None:
                error.detail = f'{named.KIND.capitalize()} "{named.name}" has no topic.'
                error.hint = f"Follow it with SELECT * FROM {show(named.name)} EMIT CHANGES;"
            raise

    def assert_topic(self, asserted: BoundAssertTopic) -> None:
        """Wait until a topic is as asserted; raises after the timeout."""
        assert_topic(asserted, self._admin, self._clock)
