import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.layout import TableLayout, fold, listing
from holdfast.client.display import width


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("", 3, [""]),
        ("abc", 3, ["abc"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("one two three", 8, ["one two", "three"]),
        ("日本語", 4, ["日本", "語"]),
        ("日", 1, ["日"]),
    ],
)
def test_folding(text: str, columns: int, lines: list[str]) -> None:
    assert fold(text, columns) == lines


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Mn", "Me", "Cf")), max_size=60),
    st.integers(2, 20),
)
def test_folded_text_fits_and_loses_only_spaces(text: str, columns: int) -> None:
    lines = fold(text, columns)
    assert all(width(line) <= columns for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def lines(budget: int | None, *rows: tuple[str, ...], names: tuple[str, ...] = ("ID", "NOTE")) -> list[str]:
    layout = TableLayout(names, [False] * len(names), budget)
    layout.fit(rows)
    return [*layout.heading(), *(line for n, row in enumerate(rows, 1) for line in layout.row(row, n))]


def test_only_the_wide_columns_give_way() -> None:
    assert lines(20, ("o1", "x" * 30), ("o2", "y")) == [
        "ID | NOTE",
        "---+----------------",
        "o1 | xxxxxxxxxxxxxxx",
        "   | xxxxxxxxxxxxxxx",
        "o2 | y",
    ]


def test_without_a_budget_nothing_is_folded() -> None:
    assert lines(None, ("o1", "x" * 200))[-1] == "o1 | " + "x" * 200


def test_too_many_columns_stand_below_each_other() -> None:
    names = tuple(f"NAME_{i}" for i in range(5))
    assert lines(20, ("1", "2", "3", "4", "long " * 4), names=names) == [
        "-- row 1 --",
        "NAME_0 | 1",
        "NAME_1 | 2",
        "NAME_2 | 3",
        "NAME_3 | 4",
        "NAME_4 | long long",
        "       | long long",
    ]


def test_before_any_row_the_open_ended_columns_share_the_room() -> None:
    layout = TableLayout(("ID", "N", "NOTE"), [False, True, False], 60)
    layout.share([0, 12, 0])
    assert layout.widths == [21, 12, 21]


NUMBERS = ("ID", "AMOUNT", "NOTE")


def numbered(budget: int, *rows: tuple[str, ...]) -> list[str]:
    layout = TableLayout(NUMBERS, [False, True, False], budget)
    layout.fit(rows)
    return [*layout.heading(), *(line for n, row in enumerate(rows, 1) for line in layout.row(row, n))]


def test_numbers_are_never_cut() -> None:
    assert numbered(32, ("a", "1234567890123", "some words that are long")) == [
        "ID |        AMOUNT | NOTE",
        "---+---------------+------------",
        "a  | 1234567890123 | some words",
        "   |               | that are",
        "   |               | long",
    ]


def test_a_heading_gives_way_to_narrow_numbers() -> None:
    layout = TableLayout(("NUMBER_OF_ORDERS", "CITY"), [True, False], 20)
    layout.fit([("12345678", "Oslo")])
    assert list(layout.heading()) == ["NUMBER_OF_ORD | CITY", "          ERS |", "--------------+-----"]


def test_numbers_that_leave_no_room_stand_below_each_other() -> None:
    assert numbered(24, ("a", "123456789012345678", "x")) == [
        "-- row 1 --",
        "ID     | a",
        "AMOUNT | 123456789012345678",
        "NOTE   | x",
    ]


def test_a_number_that_is_wider_than_those_before_it_moves_the_columns() -> None:
    layout = TableLayout(NUMBERS, [False, True, False], 40)
    layout.share([0, 6, 0])
    assert list(layout.heading()) == ["ID             | AMOUNT | NOTE", "---------------+--------+---------------"]
    assert list(layout.row(("a", "123", "x"), 1)) == ["a              |    123 | x"]
    assert list(layout.row(("b", "123456789012", "y"), 2)) == [
        "ID          |       AMOUNT | NOTE",
        "------------+--------------+------------",
        "b           | 123456789012 | y",
    ]
    assert next(iter(layout.row(("c", "1" * 30, "z"), 3))) == "-- row 3 --"
    assert next(iter(layout.row(("d", "5", "z"), 4))) == "-- row 4 --"


@given(
    st.lists(st.tuples(st.text("ab ", max_size=40), st.integers(-(10**18), 10**18).map(str)), min_size=1, max_size=8),
    st.integers(40, 90),
)
def test_rows_fit_and_every_number_is_whole(rows: list[tuple[str, str]], budget: int) -> None:
    layout = TableLayout(("TEXT", "NUMBER"), [False, True], budget)
    layout.share([0, 12])
    for number, row in enumerate(rows, 1):
        found = list(layout.row(row, number))
        assert all(width(line) <= budget for line in found)
        assert any(line.split("|")[-1].strip() == row[1] for line in found)


def test_a_listing_keeps_names_whole_and_stands_upright_when_there_is_no_room() -> None:
    names, rows = ("Query", "Statement"), [("CTAS_TOTALS_1", "CREATE TABLE totals AS SELECT id FROM orders")]
    assert list(listing(names, rows, 40)) == [
        "Query         | Statement",
        "--------------+-------------------------",
        "CTAS_TOTALS_1 | CREATE TABLE totals AS",
        "              | SELECT id FROM orders",
    ]
    assert list(listing(names, rows, 25)) == [
        "-- row 1 --",
        "Query     | CTAS_TOTALS_1",
        "Statement | CREATE TABLE",
        "          | totals AS",
        "          | SELECT id",
        "          | FROM orders",
    ]
    assert list(listing(names, rows, None))[-1] == "CTAS_TOTALS_1 | CREATE TABLE totals AS SELECT id FROM orders"
