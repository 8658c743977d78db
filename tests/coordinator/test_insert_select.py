"""Several queries write one stream: each rides, ends and comes back on its own."""

from .servers import Servers
from .service_calls import records, rows, run, states

SETUP = """
CREATE STREAM a (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_a', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM b (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_b', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM c (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_c', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO a (id, n) VALUES ('x', 1);
INSERT INTO b (id, n) VALUES ('x', 10);
CREATE STREAM both WITH (KAFKA_TOPIC = '{0}_both') AS SELECT id, n FROM a;
CREATE TABLE totals WITH (KAFKA_TOPIC = '{0}_totals') AS SELECT id, SUM(n) AS n FROM both GROUP BY id;
"""


def test_queries_that_write_one_stream_come_and_go_alone(servers: Servers) -> None:
    name = str(servers.settings.service_id)
    service = servers.start()
    run(service, SETUP.format(name))
    assert rows(service, "totals") == {("x", 1)}
    # What b has already reaches those that ride behind the stream.
    run(service, "INSERT INTO both WITH (QUERY_ID = 'from_b') SELECT id, n FROM b;")
    assert rows(service, "totals") == {("x", 11)}
    run(service, "INSERT INTO a (id, n) VALUES ('y', 2); INSERT INTO b (id, n) VALUES ('y', 20);")
    assert rows(service, "totals") == {("x", 11), ("y", 22)}
    # A query that is created now finds what all of them wrote.
    run(service, "CREATE TABLE later AS SELECT id, COUNT(*) AS c, SUM(n) AS n FROM both GROUP BY id;")
    assert rows(service, "later") == {("x", 2, 11), ("y", 2, 22)}
    # A stream over a topic gets rows by its topic.
    run(service, "INSERT INTO c SELECT id, n + 1 AS n FROM both;")
    run(service, "CREATE TABLE of_c AS SELECT id, SUM(n) AS n FROM c GROUP BY id;")
    assert rows(service, "of_c") == {("x", 13), ("y", 24)}
    before = states(service)
    assert set(before.values()) == {"RUNNING"}
    assert "FROM_B" in before
    assert sum("INSERTQUERY_" in id_ for id_ in before) == 1

    service = servers.start()
    assert states(service).keys() == before.keys()
    run(service, "INSERT INTO b (id, n) VALUES ('y', 30);")
    assert rows(service, "totals") == {("x", 11), ("y", 52)}
    assert rows(service, "of_c") == {("x", 13), ("y", 55)}
    run(service, "TERMINATE from_b;")
    assert "FROM_B" not in states(service)
    run(service, "INSERT INTO b (id, n) VALUES ('y', 400); INSERT INTO a (id, n) VALUES ('y', 3);")
    assert rows(service, "totals") == {("x", 11), ("y", 55)}
    assert rows(service, "later") == {("x", 2, 11), ("y", 4, 55)}
    assert len(records(service, f"{name}_c")) == 6
    values = sorted(value for _, value in records(service, f"{name}_both") if value)
    assert values == sorted(b'{"N":%d}' % n for n in (1, 10, 2, 20, 3, 30))
