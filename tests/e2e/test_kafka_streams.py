"""Both directions with a real Kafka Streams application: each reads the windows of the other.

The application writes tumbling, hopping and session aggregations. Their output topics and the changelogs of their
stores, read as tables, answer as the application's stores do while both run. The windows that a query of ours writes
are read by the deserializers of Kafka Streams.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from holdfast.app import Service
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.sql.properties.session import ANY_VALUE_FORMAT
from tests.coordinator.service_calls import pulled, run, wait

from .kafka_streams import KINDS, WindowedApplication, Windows, windowed_application
from .topics import producer

MINUTE = 60_000
SIZES = {"tumbling": MINUTE, "hopping": 2 * MINUTE}
GAP, GRACE, RETENTION = MINUTE // 2, 2 * MINUTE, 10 * MINUTE
SPANS = (SIZES["tumbling"], GRACE, RETENTION, SIZES["hopping"], MINUTE, GRACE, RETENTION, GAP, GRACE, RETENTION)
RECORDS, SPREAD = 400, 40 * MINUTE
PARTITIONS = 2

INPUT = "CREATE STREAM clicks (k STRING KEY, v STRING) WITH (KAFKA_TOPIC='{topic}', FORMAT='KAFKA');"
OWN = """
CREATE TABLE own_{kind} WITH (KAFKA_TOPIC='{id}-own-{kind}', FORMAT='KAFKA') AS
  SELECT k, COUNT(*) AS v FROM clicks WINDOW {window} GROUP BY k;
"""
WINDOWS = {
    "tumbling": "TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 2 MINUTES)",
    "hopping": "HOPPING (SIZE 2 MINUTES, ADVANCE BY 1 MINUTE, GRACE PERIOD 2 MINUTES)",
    "session": "SESSION (30 SECONDS, GRACE PERIOD 2 MINUTES)",
}


@pytest.fixture
def application(service: Service, admin: Admin, tmp_path: Path) -> Iterator[WindowedApplication]:
    kafka, id_ = service.settings.kafka, f"{service.settings.service_id}-app"
    assert kafka is not None
    for name in (f"{id_}-input", *(f"{id_}-{kind}" for kind in KINDS)):
        admin.create(TopicSpec(name=TopicName(name), partitions=PARTITIONS))
    with windowed_application(kafka, id_, f"{id_}-input", tmp_path / "state", SPANS) as started:
        yield started


def clicks() -> Sequence[tuple[str, str, int]]:
    """Keys, values and timestamps of the last hour, some late, some too late for their windows."""
    chosen, start = random.Random(17), (int(time.time()) // 60 - 60) * MINUTE
    steps = (start + i * SPREAD // RECORDS - chosen.choice((0, 0, 0, MINUTE, 4 * MINUTE)) for i in range(RECORDS))
    return [(f"k{chosen.randrange(8)}", f"v{i}", at + chosen.randrange(1_000)) for i, at in enumerate(steps)]


def write(service: Service, topic: str, records: Sequence[tuple[str, str, int]]) -> None:
    writer = producer(str(service.settings.kafka))
    for key, value, timestamp in records:
        writer.produce(topic, value, key, timestamp=timestamp)
    assert writer.flush(60) == 0


def windowed_table(name: str, kind: str, topic: str, layout: str) -> str:
    size = f", WINDOW_SIZE='{SIZES[kind]} MILLISECONDS'" if kind in SIZES else ""
    value = "STRING" if kind == "hopping" else "BIGINT"
    return (
        f"CREATE TABLE {name} (k STRING PRIMARY KEY, v {value}) WITH (KAFKA_TOPIC='{topic}', FORMAT='KAFKA', "
        f"WINDOW_TYPE='{kind}'{size}, WINDOW_TOPIC='{layout}', RETENTION='{RETENTION} MILLISECONDS');"
    )


def windows_of(service: Service, table: str) -> Windows:
    found = pulled(service, f"SELECT k, WINDOWSTART, WINDOWEND, v FROM {table};")
    return {(key, start, end): value for key, start, end, value in found}


def test_each_reads_the_windows_of_the_other(service: Service, application: WindowedApplication) -> None:
    records, topic = clicks(), f"{application.id}-input"
    half = RECORDS // 2
    write(service, topic, records[:half])
    wait(lambda: application.stores()[0], half)
    tables = {
        **{f"result_{kind}": (kind, topic, "TOPIC") for kind, topic in application.topics.items()},
        **{f"log_{kind}": (kind, topic, "CHANGELOG") for kind, topic in application.changelogs.items()},
    }
    run(service, "".join(windowed_table(name, *of) for name, of in tables.items()))

    def check(count: int) -> Mapping[str, Windows]:
        """The answers of the application's stores, which are those of the tables."""
        wait(lambda: application.stores()[0], count)
        stores = application.stores()[1]
        for name, (kind, _, _) in tables.items():
            assert stores[kind], kind
            wait(lambda name=name: windows_of(service, name), stores[kind])
        return stores

    first = check(half)
    run(service, INPUT.format(topic=topic))
    for kind, window in WINDOWS.items():
        run(service, OWN.format(kind=kind, id=application.id, window=window), {ANY_VALUE_FORMAT: "true"})
    write(service, topic, records[half:])
    last = check(RECORDS)
    assert all(first[kind].keys() - last[kind].keys() for kind in KINDS), "windows have expired in the meantime"

    for kind in ("tumbling", "session"):
        # The same aggregation on either side; ours retains the windows for longer.
        wait(lambda kind=kind: {w: windows_of(service, f"own_{kind}").get(w) for w in last[kind]}, last[kind])
    for kind in KINDS:
        own = windows_of(service, f"own_{kind}")
        assert len(own) > len(last[kind])
        wait(lambda kind=kind: application.read(kind, f"{application.id}-own-{kind}", SIZES.get(kind)), own)
