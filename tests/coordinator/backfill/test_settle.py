"""Backfills wait until the statements of a script are through, but not for statements without end."""

from holdfast.app import Service
from holdfast.sql.syntax.parse import statements
from tests.coordinator.servers import Servers
from tests.coordinator.service_calls import rows, run, states

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO s (id, n) VALUES ('a', 1);
"""


def execute(service: Service, sql: str) -> None:
    for parsed in statements(sql):
        service.execute(parsed, {})


def test_a_query_is_built_while_statements_come_without_end(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    settle = service.coordinator._intervals.settle
    execute(service, "CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM s GROUP BY id;")
    for n in range(3):
        servers.clock.advance(settle / 2)
        execute(service, f"CREATE TYPE x{n} AS STRUCT<n INT>;")
        service.coordinator.step()
        assert set(states(service).values()) == {"BUILDING"}, "it waits for the statements of a script"
    for n in range(10):
        servers.clock.advance(settle / 2)
        execute(service, f"CREATE TYPE y{n} AS STRUCT<n INT>;")
        service.coordinator.step()
    assert rows(service, "t") == {("a", 1)}
