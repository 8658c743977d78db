import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.layout import Layout, fold
from holdfast.client.shown import width


@pytest.mark.parametrize(
    ("text", "columns", "pieces"),
    [
        ("", 3, [""]),
        ("abc", 3, ["abc"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("one two three", 8, ["one two", "three"]),
        ("日本語", 4, ["日本", "語"]),
        ("日", 1, ["日"]),
    ],
)
def test_folding(text: str, columns: int, pieces: list[str]) -> None:
    assert fold(text, columns) == pieces


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Mn", "Me", "Cf")), max_size=60),
    st.integers(2, 20),
)
def test_folded_text_fits_and_loses_only_spaces(text: str, columns: int) -> None:
    pieces = fold(text, columns)
    assert all(width(piece) <= columns for piece in pieces)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


def lines(budget: int | None, *rows: tuple[str, ...], names: tuple[str, ...] = ("ID", "NOTE")) -> list[str]:
    layout = Layout(names, [False] * len(names), budget)
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
    layout = Layout(("ID", "N", "NOTE"), [False, True, False], 60)
    layout.share([0, 12, 0])
    assert layout.widths == [20, 12, 22]
