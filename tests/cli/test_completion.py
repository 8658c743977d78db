import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from holdfast.cli.completion import SqlCompleter
from holdfast.cli.names import CompletionNames

NAMES = CompletionNames(
    columns={"ORDERS": ["ID", "AMOUNT"], "TOTALS": ["ID", "TOTAL"], "`mixed`": ["`Column`"]},
    kinds={"ORDERS": "stream", "TOTALS": "table", "`mixed`": "table"},
    queries=["CTAS_TOTALS_1"],
    functions=["ABS", "UCASE"],
)


def completed(before: str, after: str = "") -> list[str]:
    document = Document(before + after, len(before))
    return [c.text for c in SqlCompleter(lambda: NAMES).get_completions(document, CompleteEvent())]


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("SHO", ["SHOW"]),
        ("show st", ["streams"]),
        ("SELECT * FROM ", ["ORDERS", "TOTALS", "`mixed`"]),
        ("SELECT * FROM tot", ["totals"]),
        ("SELECT TOTALS.ID, TO", ["TOTAL"]),
        ("SELECT * FROM ORDERS WHERE A", ["AMOUNT", "ABS", "ARRAY"]),
        ("INSERT INTO totals (", ["ID", "TOTAL"]),
        ("CREATE STREAM s (a BIG", ["BIGINT"]),
        ("CREATE STREAM s (a INT) WITH (value", ["value_format", "value_delimiter"]),
        ("TERMINATE ", ["CTAS_TOTALS_1", "ALL"]),
        ("SHOW STREAMS; DESCRIBE to", ["totals"]),
        ("SET 'auto", ["auto.offset.reset"]),
        ("OUTPUT J", ["JSON"]),
        ("HELP DR", ["DROP"]),
        ("spo", ["spool"]),
        ("SELECT 'to", []),
        ("SELECT x AS to", []),
    ],
)
def test_what_can_be_completed(before: str, found: list[str]) -> None:
    assert completed(before) == found


def test_columns_are_those_of_the_relation_that_follows() -> None:
    assert completed("SELECT T", " FROM totals;") == ["TOTAL", "TRUE"]
    assert completed("SELECT T", " FROM orders;") == ["TRUE"]
