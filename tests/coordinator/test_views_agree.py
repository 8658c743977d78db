"""A view that is computed when it is read and one that is kept as its inputs change give the same, at every time."""

from holdfast.app import Service

from .servers import Servers
from .service_calls import rows, run
from .test_materialized import ask

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, k STRING, n INT)
  WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON', PARTITIONS = 1, RETAIN HISTORY FOR '1h');
CREATE TABLE names (k STRING PRIMARY KEY, name STRING)
  WITH (KAFKA_TOPIC = '{0}_names', VALUE_FORMAT = 'JSON', PARTITIONS = 1, RETAIN HISTORY FOR '1h');
CREATE VIEW as_filtered AS SELECT id, n * 2 AS m FROM t WHERE n > 2;
CREATE VIEW as_summed AS SELECT k, SUM(n) AS s, COUNT(*) AS c FROM t GROUP BY k HAVING COUNT(*) > 0;
CREATE VIEW as_named AS SELECT t.id AS id, name, n FROM t JOIN names ON t.k = names.k;
"""
VIEWS = ("filtered", "summed", "named")
CHANGES = [
    "INSERT INTO t (id, k, n) VALUES ('a', 'x', 1); INSERT INTO names (k, name) VALUES ('x', 'ex');",
    "INSERT INTO t (id, k, n) VALUES ('b', 'x', 4);",
    "INSERT INTO names (k, name) VALUES ('y', 'why'); INSERT INTO t (id, k, n) VALUES ('a', 'y', 3);",
    "INSERT INTO names (k, name) VALUES ('x', 'eggs');",
    "INSERT INTO t (id, k, n) VALUES ('b', 'y', 0);",
    "INSERT INTO t (id, k, n) VALUES ('c', 'x', 9);",
]
SEEN = [("b", "x", 4), ("a", "y", 3), ("x", "eggs"), ("b", "y", 0), ("c", "x", 9)]
"""What is there after each but the first."""


def agree(service: Service, times: list[int]) -> None:
    for at in times:
        for name in VIEWS:
            computed = ask(service, f"SELECT * FROM as_{name} AS OF {at};")[0]
            assert ask(service, f"SELECT * FROM {name} AS OF {at};")[0] == computed, (name, at)


def test_views_that_are_computed_and_views_that_are_kept_agree(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    run(service, CHANGES[0])
    assert (rows(service, "t"), rows(service, "names")) == ({("a", "x", 1)}, {("x", "ex")})
    for name in VIEWS:
        run(service, f"CREATE MATERIALIZED VIEW {name} WITH (RETAIN HISTORY FOR '1h') AS SELECT * FROM as_{name};")
    assert [len(rows(service, name)) for name in VIEWS] == [0, 1, 1]
    times = []
    for text, seen in zip(CHANGES[1:], SEEN, strict=True):
        run(service, text)
        assert seen in rows(service, "t") | rows(service, "names")
        times.append(ask(service, "SELECT * FROM named JOIN filtered ON named.id = filtered.id;")[1])
    assert rows(service, "filtered") == {("a", 6), ("c", 18)}
    times.append(ask(service, "SELECT * FROM named JOIN filtered ON named.id = filtered.id;")[1])
    assert len({frozenset(ask(service, f"SELECT * FROM as_named AS OF {at};")[0]) for at in times}) > 2
    agree(service, times)
    service = servers.start()
    agree(service, times)
