"""(b): 20 records a second at the tail of a topic: from produce until a pull query and a push client see them."""

import statistics
import threading
import time

from confluent_kafka import Producer

from bench.service import run, running, select, wait_running
from holdfast.app import Service

RATE, WARM_SECONDS, SECONDS = 20, 40, 20
"""A JVM needs a few hundred ticks before Spark's planner is compiled."""

EVENTS = """
CREATE STREAM events (user VARCHAR KEY, n BIGINT)
  WITH (KAFKA_TOPIC='bench_events', VALUE_FORMAT='JSON', PARTITIONS=2);
"""


def one(queries: int) -> tuple[list[float], list[float]]:
    """Milliseconds to pull and to push, with `queries` queries on the topic."""
    with running() as service:
        run(service, EVENTS)
        for i in range(queries):
            counted = "SELECT user, COUNT(*) AS c, MAX(n) AS n FROM events"
            run(service, f"CREATE TABLE t{i} AS {counted} WHERE n >= {-i} GROUP BY user;")
        wait_running(service)
        return follow(service)


def follow(service: Service) -> tuple[list[float], list[float]]:
    sent: dict[int, float] = {}
    pulled: dict[int, float] = {}
    pushed: dict[int, float] = {}
    stop = threading.Event()
    push = service.push(select(service, "SELECT user, n FROM t0 EMIT CHANGES;"), {})

    def watch_push() -> None:
        while not stop.is_set():
            batch = push.next(0.5)
            now = time.monotonic()
            if batch is not None:
                for n in batch.rows.column("r1").to_pylist():
                    pushed.setdefault(n, now)

    def watch_pull() -> None:
        bound = select(service, "SELECT n FROM t0 WHERE user = 'u';")
        seen = -1
        while not stop.is_set():
            rows = service.pull(bound).rows.column("r0").to_pylist()
            now = time.monotonic()
            for n in range(seen + 1, (rows[0] if rows else -1) + 1):
                pulled[n] = now
            seen = rows[0] if rows else -1
            time.sleep(0.01)

    threads = [threading.Thread(target=watch, daemon=True) for watch in (watch_push, watch_pull)]
    for thread in threads:
        thread.start()
    producer = Producer({"bootstrap.servers": service.settings.kafka, "linger.ms": 0})
    for n in range(RATE * (WARM_SECONDS + SECONDS)):
        sent[n] = time.monotonic()
        producer.produce("bench_events", b'{"n":%d}' % n, b"u")
        producer.poll(0)
        time.sleep(max(0.0, 1 / RATE - (time.monotonic() - sent[n])))
    producer.flush()
    time.sleep(3)
    stop.set()
    for thread in threads:
        thread.join()
    push.close()
    first = RATE * WARM_SECONDS
    newest = max(pushed)
    arrived = {n: min(at for m, at in pushed.items() if m >= n) for n in sent if n <= newest}
    return (
        [1000 * (pulled[n] - sent[n]) for n in pulled if n >= first],
        [1000 * (at - sent[n]) for n, at in arrived.items() if n >= first],
    )


def measure() -> list[str]:
    lines = [
        "| 20 records a second, queries on the topic | pull p50 / p99 ms | push p50 / p99 ms | target p50 |",
        "|---|--:|--:|--:|",
    ]
    for queries, target in ((1, "120"), (10, ""), (30, "300")):
        pull, push = one(queries)
        lines.append(f"| (b) {queries} | {spread(pull)} | {spread(push)} | {target} |")
    return lines


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.0f} / {ordered[int(len(ordered) * 0.99) - 1]:.0f}"


if __name__ == "__main__":
    print("\n".join(measure()))
