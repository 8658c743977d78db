"""A stepped service: when it is idle, nothing is left to do."""

from holdfast.app import Service

from .servers import NOW_MS, Servers
from .service_calls import rows, run, states


def test_an_idle_service_has_waited_until_its_backfills_could_start(servers: Servers, service: Service) -> None:
    """After a change of the catalog, backfills wait for the rest of the script, here on a clock that nobody moves."""
    run(
        service,
        "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE TABLE big AS SELECT id, n FROM t WHERE n > 1;"
        "INSERT INTO t (id, n) VALUES ('a', 1); INSERT INTO t (id, n) VALUES ('b', 2);",
    )
    assert set(states(service).values()) == {"RUNNING"}
    assert rows(service, "big") == {("b", 2)}
    assert servers.clock.now_ms() == NOW_MS + 250
    service.run_until_idle()
    assert servers.clock.now_ms() == NOW_MS + 250
