"""Records come from the consumer as Arrow, or are read by Spark itself: the results are the same."""

import itertools

from confluent_kafka import Producer
from runtime.driver import Driver

from holdfast.coordinator.intake import by_topic
from holdfast.kafka.client_properties import kafka_client
from holdfast.runtime.record_decoder import RecordDecoder
from holdfast.runtime.spark.engine import OffsetRange, TopicRange
from holdfast.runtime.tick import Ticker
from holdfast.runtime.tick_inputs import TickInputs

SQL = """
CREATE STREAM s (id STRING KEY, n INT, t STRING, h BYTES HEADER('h')) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');
CREATE STREAM p AS SELECT id, n + 1 AS n, UCASE(t) AS t, ROWTIME AS r, ROWPARTITION AS q, ROWOFFSET AS o, h FROM s;
CREATE STREAM pp AS SELECT id, n FROM p WHERE n > 2;
CREATE TABLE g AS SELECT id, COUNT(*) AS c, SUM(n) AS s FROM s GROUP BY id;
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');
CREATE TABLE u AS SELECT id, n FROM t WHERE n > 1;
"""
KEYS = [b"a", b"b", None, b""]
VALUES = [b'{"N": 1, "T": "x"}', b'{"n": "2", "t": "\xc3\xa9"}', None, b"nonsense", b'{"N": 3}', b"", b'{"T": null}']


def test_both_ways_in_give_the_same(kafka_engine, settings, ranges, new_topic):
    topic = new_topic(2)
    producer = Producer(kafka_client(settings))
    for i, (key, value) in enumerate(itertools.product(KEYS, VALUES)):
        headers = [("x", None), ("h", str(i).encode())] if i % 3 else []
        producer.produce(topic, value, key, partition=i % 2, timestamp=1_000 + i, headers=headers)
    assert producer.flush(10) == 0
    ends = {0: len(KEYS) * len(VALUES) // 2, 1: len(KEYS) * len(VALUES) // 2}
    arrow = by_topic(ranges.read({(topic, part): (2, end) for part, end in ends.items()}))
    spark = {topic: TopicRange(topic, tuple(OffsetRange(part, 2, end) for part, end in ends.items()))}

    results = []
    for topics in (arrow, spark):
        driver = Driver(kafka_engine, SQL.format(topic=topic))
        ticker = Ticker(kafka_engine, driver.store, RecordDecoder(kafka_engine))
        stage, outcome = ticker.run(driver.dataflow, driver.dataflow.programs, TickInputs(topics))
        driver.commit_point.commit(stage, outcome)
        driver.service.run_until_idle()
        skipped = {u.object: (u.total, u.records.to_pylist()) for u in outcome.undecodable}
        sent = {name: driver.sent(name) for name in ("P", "PP")}
        rows = {name: driver.rows(name) for name in ("G", "T", "U")}
        results.append((outcome.failed, skipped, sent, rows))
        driver.close()

    assert results[0] == results[1]
    failed, skipped, sent, rows = results[0]
    assert failed == {}
    assert {name: total for name, (total, _) in skipped.items()} == {"P": 7, "T": 12}
    assert len(sent["P"]) == 17
    assert sum(record.value is None for record in sent["P"]) == 3
    assert {tuple(header["key"] for header in record.headers or ()) for record in sent["PP"]} == {(), ("x", "h")}
    assert len(rows["G"]) == 3
