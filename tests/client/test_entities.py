"""What statements were answered with, to be looked at."""

from holdfast.client import Client


def test_lists_and_descriptions_as_text(url: str) -> None:
    with Client(url) as client:
        shown = repr(client.execute("SHOW STREAMS; SHOW QUERIES; DESCRIBE totals; SHOW PROPERTIES; SHOW TYPES;"))
    assert "ORDERS         | orders " in shown
    assert "| RUNNING | TOTALS | CREATE TABLE totals AS SELECT" in shown
    assert "Kind          TABLE" in shown
    assert "TOTAL  | INTEGER |" in shown
    assert "auto.offset.reset " in shown
    assert "There are no types." in shown


def test_a_windowed_table_as_text(url: str) -> None:
    windows = "WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 MINUTE', RETENTION='1 HOUR'"
    with Client(url) as client:
        client.execute(
            "CREATE TABLE w (id STRING PRIMARY KEY, n INT) "
            f"WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', PARTITIONS=1, {windows});"
        )
        shown = repr(client.execute("DESCRIBE w; SHOW TABLES;"))
        client.execute("DROP TABLE w;")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert {"Window HOPPING of 1 minute", "Window topic TOPIC", "Retention 1 hour"} <= set(lines)


def test_lists_and_descriptions_in_a_notebook(url: str) -> None:
    with Client(url) as client:
        html = client.execute("SHOW TABLES; EXPLAIN SELECT id FROM totals;")._repr_html_()
        picture = client.execute("EXPLAIN SELECT id FROM totals AS SVG;")
        document = client.execute("EXPLAIN SELECT id FROM totals AS DOT;")
    assert "<th" in html
    assert ">TOTALS</td>" in html
    assert "<pre>Query PULL_TOTALS\n" in html
    assert picture._repr_html_().startswith("<svg ")
    assert repr(picture).startswith("<svg ")
    assert "<pre>digraph plan {" in document._repr_html_()
