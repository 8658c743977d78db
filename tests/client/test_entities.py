"""What statements were answered with, to be looked at."""

from holdfast.client import Client
from tests.server.fake import FakeService


def test_lists_and_descriptions_as_text(url: str, service: FakeService) -> None:
    del service
    with Client(url) as client:
        shown = repr(client.execute("SHOW STREAMS; SHOW QUERIES; DESCRIBE totals; SHOW PROPERTIES;"))
    assert "ORDERS | orders | KAFKA      | JSON" in shown
    assert "| RUNNING | TOTALS | CREATE TABLE totals AS SELECT" in shown
    assert "Kind          TABLE" in shown
    assert "TOTAL  | INTEGER |" in shown
    assert "There are no properties." in shown


def test_lists_and_descriptions_in_a_notebook(url: str, service: FakeService) -> None:
    del service
    with Client(url) as client:
        html = client.execute("SHOW TABLES; EXPLAIN SELECT id FROM totals;")._repr_html_()
    assert "<th" in html
    assert ">TOTALS</td>" in html
    assert "<p>plan of BoundSelect</p>" in html
