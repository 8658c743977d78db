"""Push queries on a topic that Kafka is slow to send hold up no others, and lose nothing."""

import threading
import time
from collections.abc import Iterator, Mapping

import anyio
import pyarrow as pa
import pytest

from holdfast.kafka.memory.consumer import MemoryRanges
from holdfast.kafka.port import TopicSilent
from holdfast.kafka.records import Partition
from holdfast.names import TopicName
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.server.http.framing import Delimited
from holdfast.server.http.push_sender import PushSender, SenderPool
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from tests.server.local import LocalService, eventually, local_service

STREAM = "CREATE STREAM {0} (id STRING KEY, n INT) WITH (KAFKA_TOPIC='{0}', VALUE_FORMAT='JSON', PARTITIONS=1);"
READERS = 20
ROWS = (b'["a",1]', b'["b",2]')


class SlowTopic:
    """A topic of which Kafka sends nothing until `sends` is set."""

    def __init__(self, name: TopicName) -> None:
        self.name, self.sends = name, threading.Event()
        self.reading = self.most = self.timeouts = 0
        self._lock = threading.Lock()

    def read(self, timeout: float) -> None:
        with self._lock:
            self.reading += 1
            self.most = max(self.most, self.reading)
        sent = self.sends.wait(timeout)
        with self._lock:
            self.reading -= 1
            self.timeouts += not sent
        if not sent:
            raise TopicSilent(self.name, detail="No record came.")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowTopic]:
    topic, read = SlowTopic(TopicName("slow")), MemoryRanges.read

    def slowly(self: MemoryRanges, ranges: Mapping[Partition, tuple[int, int]], *, timeout: float = 60.0) -> pa.Table:
        if any(name == topic.name for name, _ in ranges):
            topic.read(timeout)
        return read(self, ranges, timeout=timeout)

    monkeypatch.setattr(MemoryRanges, "read", slowly)
    yield topic
    topic.sends.set()


async def follow(service: LocalService, pool: SenderPool, text: str, found: list[bytes]) -> None:
    """Collect what a push query sends until it ends."""
    (parsed,) = parse(text)
    push = service.push(bind(parsed.statement, service.catalog, {}), {"auto.offset.reset": "earliest"})
    sender = PushSender(push, Delimited(), pool, limit=None, progress=False)
    async for part in sender.parts():
        found.append(part)
    await sender.close()


def test_readers_of_a_slow_topic_hold_up_no_others_and_lose_nothing(engines: EnginePair, slow: SlowTopic) -> None:
    found: list[list[bytes]] = [[] for _ in range(READERS)]
    passed: list[float] = []
    notices: list[object] = []

    async def follow_all(service: LocalService) -> None:
        pool, healthy = SenderPool(service), list[bytes]()
        async with anyio.create_task_group() as readers:
            for i, parts in enumerate(found):
                # Some of them read the same rows, and share their reads.
                text = f"SELECT id, n + {i // 5} - {i // 5} AS n FROM slow EMIT CHANGES LIMIT 2;"
                readers.start_soon(follow, service, pool, text, parts)
            await anyio.sleep(0.5)
            started = time.monotonic()
            with anyio.move_on_after(15):
                await follow(service, pool, "SELECT id, n FROM healthy EMIT CHANGES LIMIT 2;", healthy)
            passed.append(time.monotonic() - started)
            await anyio.to_thread.run_sync(eventually, lambda: slow.timeouts > 0, 10.0)
            notices.append(service.health().notices.get("subscriptions"))
            slow.sends.set()
        assert all(row in b"".join(healthy) for row in ROWS)

    with local_service(engines) as service:
        for name in ("slow", "healthy"):
            service.run(STREAM.format(name))
            service.write(name, ("a", {"N": 1}), ("b", {"N": 2}))
        visible = {("slow", 2), ("healthy", 2)}
        assert eventually(lambda: visible <= {(e.topic, e.offset) for e in service._store.remap_ends()})
        anyio.run(follow_all, service)

    assert passed[0] < 2
    assert slow.most <= 2
    assert "No record came." in str(notices[0])
    for parts in found:
        text = b"".join(parts)
        assert [text.count(row) for row in ROWS] == [1, 1]
