"""Windows that are open when a server stops are open when it starts again."""

from runtime.driver import Driver, Record

SQL = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE visits AS SELECT id, SUM(n) AS s FROM s WINDOW SESSION (10 MILLISECONDS) GROUP BY id;
CREATE TABLE last AS SELECT id, SUM(n) AS s FROM s WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY id EMIT FINAL;
"""


def row(key: bytes, n: int, at: int) -> Record:
    return Record("s", key, b'{"N": %d}' % n, at)


def test_open_windows_outlive_a_restart(engine, tmp_path):
    driver = Driver(engine, SQL, folder=tmp_path)
    driver.tick([row(b"a", 1, 3), row(b"b", 2, 4)])
    driver = driver.restart()
    driver.tick([row(b"a", 4, 9), row(b"a", 8, 29)])
    driver = driver.restart()
    driver.tick([row(b"a", 16, 19), row(b"b", 32, 4)])
    assert driver.rows("VISITS") == [("a", 3, 29, 29, 29), ("b", 4, 4, 34, 4)]
    assert driver.rows("LAST") == [("a", 0, 10, 5, 9), ("b", 0, 10, 2, 4)]
    driver.close()
