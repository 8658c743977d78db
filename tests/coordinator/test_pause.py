"""A paused query reads nothing, also after a restart, and resumes where it stopped."""

from .servers import Servers
from .service_calls import records, rows, run, states

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_s', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM big WITH (KAFKA_TOPIC = '{0}_big') AS SELECT id, n FROM s WHERE n > 1;
CREATE TABLE per_id WITH (KAFKA_TOPIC = '{0}_per_id') AS SELECT id, SUM(n) AS n FROM big GROUP BY id;
CREATE TABLE totals WITH (KAFKA_TOPIC = '{0}_totals') AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;
CREATE TABLE small WITH (KAFKA_TOPIC = '{0}_small') AS SELECT id, n FROM t WHERE n < 10;
INSERT INTO s (id, n) VALUES ('a', 5);
INSERT INTO t (id, n) VALUES ('a', 1);
INSERT INTO t (id, n) VALUES ('b', 2);
"""


def test_a_paused_query_goes_on_from_where_it_stood(servers: Servers) -> None:
    name = str(servers.settings.service_id)
    service = servers.start()
    run(service, SETUP.format(name))
    assert (rows(service, "per_id"), rows(service, "totals")) == ({("a", 5)}, {("a", 1)})
    assert rows(service, "small") == {("a", 1), ("b", 2)}
    ids = {str(query.sink): str(query.id) for query in service.queries()}
    run(service, f"PAUSE {ids['PER_ID']}; PAUSE {ids['SMALL']};")
    assert states(service) == {
        ids["BIG"]: "RUNNING", ids["PER_ID"]: "PAUSED", ids["TOTALS"]: "RUNNING", ids["SMALL"]: "PAUSED"
    }  # fmt: skip
    run(service, "INSERT INTO s (id, n) VALUES ('a', 6); INSERT INTO t (id, n) VALUES ('b', 20);")
    assert rows(service, "totals") == {("a", 2)}
    assert (rows(service, "per_id"), rows(service, "small")) == ({("a", 5)}, {("a", 1), ("b", 2)})

    service = servers.start()
    run(service, "INSERT INTO s (id, n) VALUES ('b', 7);")
    assert rows(service, "totals") == {("a", 2), ("b", 1)}
    assert states(service)[ids["PER_ID"]] == "PAUSED"
    assert rows(service, "per_id") == {("a", 5)}
    run(service, "RESUME ALL;")
    assert rows(service, "per_id") == {("a", 11), ("b", 7)}
    assert rows(service, "small") == {("a", 1)}
    assert set(states(service).values()) == {"RUNNING"}
    # Each record was counted once, and a row that went meanwhile is gone from the topic, too.
    assert dict(records(service, f"{name}_per_id")) == {b"a": b'{"N":11}', b"b": b'{"N":7}'}
    assert dict(records(service, f"{name}_small")) == {b"a": b'{"N":1}', b"b": None}
    run(service, "PAUSE ALL;")
    assert set(states(service).values()) == {"PAUSED"}
    run(service, "INSERT INTO s (id, n) VALUES ('b', 8); RESUME ALL;")
    assert rows(service, "per_id") == {("a", 11), ("b", 15)}
    assert rows(service, "totals") == {("a", 2), ("b", 2)}
