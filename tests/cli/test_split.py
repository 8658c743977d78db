import pytest

from holdfast.cli.split import script_position, split_statements
from holdfast.errors import Position


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("", []),
        (" ;; -- only this\n /* and ; this */", []),
        ("SHOW STREAMS;", ["SHOW STREAMS"]),
        ("SHOW STREAMS; SHOW TABLES", ["SHOW STREAMS", "SHOW TABLES"]),
        ("INSERT INTO s VALUES ('a;b''c');", ["INSERT INTO s VALUES ('a;b''c')"]),
        ('SELECT "a;b", `c;d` FROM t;', ['SELECT "a;b", `c;d` FROM t']),
        ("-- one;\nSELECT 1 -- two;\n, 2 /* ; */ FROM t; -- three", ["SELECT 1 -- two;\n, 2 /* ; */ FROM t"]),
        ("SELECT 'open; SHOW", ["SELECT 'open; SHOW"]),
    ],
)
def test_statements_of_a_script(script: str, found: list[str]) -> None:
    assert [statement.text for statement in split_statements(script)] == found


def test_what_asks_for_rows() -> None:
    script = "select 1; /* x */ SELECT 2; show streams; insert into s values (1)"
    assert [statement.returns_rows for statement in split_statements(script)] == [True, True, False, False]


def test_places_are_those_of_the_script() -> None:
    script = "SHOW STREAMS;\nSELECT a,\n  b FROM t;"
    *_, last = split_statements(script)
    assert script_position(script, last.start, Position(2, 3, 12)) == Position(3, 3, script.index("b FROM"))
    assert script_position(script, last.start, Position(1, 8, 7)) == Position(2, 8, script.index("a,"))
