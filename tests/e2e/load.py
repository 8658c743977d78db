"""A background producer: keyed JSON records, some in transactions, some of those aborted, some that are not JSON."""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from .topics import SECONDS, producer

KEYS = [f"k{n:02}" for n in range(40)]
RISING = set(KEYS[::4])
"""Keys whose sums grow beyond any limit; the sums of the others go up and down."""
TAGS = ("a", "b", "c", "d")
NOT_JSON = b'{"n": 1, "x'


@dataclass(frozen=True, slots=True)
class Written:
    """A committed record. Its value is the decoded JSON, None for a tombstone, bytes when it is not JSON."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: str
    value: dict[str, Any] | bytes | None


class Load:
    """Writes until it is stopped; `written` has the records that results are compared with."""

    def __init__(
        self, kafka: str, events: str, facts: str, *, seed: int, number: int = 0, batches_per_second: float = 3.0
    ) -> None:
        """`number` is the number of the first record."""
        self.events, self.facts = events, facts
        self._random = random.Random(seed)
        self._pause = 1 / batches_per_second
        self._plain = producer(kafka)
        self._transactional = producer(kafka, f"load-{events}")
        self._written: list[Written] = []
        self._number = number
        self._turn = Lock()
        self._stopping = Event()
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="load", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def halt(self) -> None:
        """Stop after the current batch, whether it succeeds or not."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(2 * SECONDS)

    def stop(self) -> None:
        """Stop, and fail if a batch has failed."""
        self.halt()
        assert not self._thread.is_alive(), "the load did not stop"
        if self._failure is not None:
            raise AssertionError("the load failed") from self._failure

    def written(self) -> Sequence[Written]:
        """All committed records, while no batch is being written."""
        with self._turn:
            assert self._failure is None, f"the load failed: {self._failure}"
            return list(self._written)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing during the block; a batch that has begun ends first."""
        with self._turn:
            yield

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._pause):
                with self._turn:
                    self._batch()
        except BaseException as failure:
            self._failure = failure

    def _batch(self) -> None:
        way = self._random.random()
        if way < 0.6:
            self._written += self._write(self._plain)
            return
        self._transactional.begin_transaction()
        written = self._write(self._transactional)
        if way < 0.85:
            self._transactional.commit_transaction(SECONDS)
            self._written += written
        else:
            self._transactional.abort_transaction(SECONDS)

    def _write(self, to: Producer) -> list[Written]:
        delivered: list[Written] = []
        batch = [self._event() for _ in range(self._random.randint(1, 40))]
        batch += [self._fact() for _ in range(self._random.randint(0, 8))]
        for topic, key, value in batch:

            def note(error: KafkaError | None, message: Message, key: str = key, value: Any = value) -> None:
                assert error is None, str(error)
                _, timestamp = message.timestamp()
                delivered.append(Written(message.topic(), message.partition(), message.offset(), timestamp, key, value))

            encoded = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            to.produce(topic, encoded, key, on_delivery=note)
        assert to.flush(SECONDS) == 0, "Kafka did not accept a batch"
        assert len(delivered) == len(batch)
        return delivered

    def _event(self) -> tuple[str, str, dict[str, Any] | bytes]:
        choose = self._random
        self._number += 1
        key = choose.choice(KEYS)
        if choose.random() < 0.01:
            return self.events, key, NOT_JSON
        x = choose.randint(-2, 10) if key in RISING else choose.randint(-6, 6)
        return self.events, key, {"n": self._number, "x": x, "tag": choose.choice(TAGS)}

    def _fact(self) -> tuple[str, str, dict[str, Any] | None]:
        choose = self._random
        self._number += 1
        key = f"f{choose.randrange(30):02}"
        return self.facts, key, None if choose.random() < 0.15 else {"v": choose.randint(0, 99), "n": self._number}
