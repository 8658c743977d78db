"""While Kafka is away, tables stay readable; what was committed meanwhile is written once it is back, and once only."""

import pytest

from holdfast.app import Service
from holdfast.errors import KafkaError
from holdfast.names import TopicName

from .servers import Servers
from .service_calls import records, rows, run

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM twice WITH (KAFKA_TOPIC = 'twice') AS SELECT id, n * 2 AS n FROM s;
CREATE TABLE totals WITH (KAFKA_TOPIC = 'totals') AS SELECT id, SUM(n) AS n FROM twice GROUP BY id;
INSERT INTO s (id, n) VALUES ('a', 1);
"""


def test_rows_wait_while_kafka_is_away_and_are_written_once(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    servers.broker.append(TopicName("s"), b'{"N": 2}', b"a")
    assert service.coordinator.step()
    with servers.broker.suspended():
        for _ in range(2):
            with pytest.raises(KafkaError, match="cannot be reached"):
                service.publishing.publish_pending()
        with pytest.raises(KafkaError, match="cannot be reached"):
            servers.let_pass()
        assert rows(service, "totals") == {("a", 6)}
        with pytest.raises(KafkaError, match="cannot be reached"):
            run(service, "INSERT INTO s (id, n) VALUES ('a', 3);")
    run(service, "INSERT INTO s (id, n) VALUES ('a', 4);")
    assert [value for _, value in records(service, "twice")] == [b'{"N":2}', b'{"N":4}', b'{"N":8}']
    assert [value for _, value in records(service, "totals")] == [b'{"N":2}', b'{"N":6}', b'{"N":14}']
    # A query that is created now reads from the topic what was written then.
    run(service, "CREATE TABLE later AS SELECT id, COUNT(*) AS c FROM twice GROUP BY id;")
    assert rows(service, "later") == {("a", 3)}


def test_a_transaction_that_was_cut_off_is_written_once(
    servers: Servers, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka goes between the records of a transaction and its commit."""
    run(service, SETUP)
    servers.broker.append(TopicName("s"), b'{"N": 2}', b"a")
    assert service.coordinator.step()
    producer = service.publishing._main.lane._producer
    with monkeypatch.context() as patched:

        def cut_off() -> None:
            with servers.broker.suspended():
                type(producer).commit(producer)

        patched.setattr(producer, "commit", cut_off)
        with pytest.raises(KafkaError, match="cannot be reached"):
            service.publishing.publish_pending()
        assert [value for _, value in records(service, "twice")] == [b'{"N":2}']
    service.run_until_idle()
    assert [value for _, value in records(service, "twice")] == [b'{"N":2}', b'{"N":4}']
    assert [value for _, value in records(service, "totals")] == [b'{"N":2}', b'{"N":6}']
