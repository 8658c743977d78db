import pytest

from holdfast.errors import BadTime
from holdfast.sql.literals.duration import duration_ms, duration_text
from holdfast.sql.literals.moment import BoundAsOf, Moment, bind_as_of
from holdfast.sql.syntax.parse import parse_select

NOW = 1_700_000_000_000


def as_of(text: str) -> BoundAsOf:
    bound = bind_as_of(parse_select(f"SELECT * FROM t AS OF {text}").as_of)
    assert bound is not None
    return bound


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("0", 0),
        ("1700000000123", 1700000000123),
        ("1700000000123.000", 1700000000123),
        ("'1700000000123'", 1700000000123),
        ("1700000000123::BIGINT", 1700000000123),
        ("'2024'", 1704067200000),
        ("'2024-01-01T10:00:00.5'", 1704103200500),
        ("'2024-01-01 10:00:00+02:00'", 1704096000000),
        ("TIMESTAMP '2024-01-01T10'", 1704103200000),
        ("DATE '2024-01-01'", 1704067200000),
        ("now()", NOW),
        ("NOW() - INTERVAL '1 hour'", NOW - 3_600_000),
        ("mz_now() - 1", NOW - 1),
        ("'2024' + INTERVAL '1 day 06:30:00.250' - 250", 1704067200000 + 86_400_000 + 23_400_000),
    ],
)
def test_what_can_be_read_as_a_time(text, at):
    assert as_of(text).moment.at(NOW) == at


def test_at_least():
    assert as_of("AT LEAST 5") == BoundAsOf(Moment(5, position=as_of("AT LEAST 5").moment.position), at_least=True)
    assert not as_of("5").at_least


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "A is not a valid time"),
        ("'yesterday'", "'yesterday' is not a valid time"),
        ("'2024-13-01'", "'2024-13-01' is not a valid time"),
        ("1.5", "1.5 is not a valid time"),
        ("true", "true is not a valid time"),
        ("-5", "the time -5 is out of range"),
        ("9223372036854775808", "the time 9223372036854775808 is out of range"),
        ("now() - INTERVAL 'soon'", "'soon' is not a valid duration"),
        ("now() - '1h'", "'1h' cannot be added to a time"),
    ],
)
def test_what_cannot(text, message):
    with pytest.raises(BadTime) as raised:
        as_of(text)
    assert raised.value.message == message
    assert raised.value.sqlstate == "22007"
    assert raised.value.position is not None
    assert raised.value.position.column >= 23


def test_a_time_that_is_none_says_how_to_write_one():
    with pytest.raises(BadTime) as raised:
        as_of("'yesterday'")
    assert str(raised.value) == (
        "'yesterday' is not a valid time at line 1, column 23\n"
        "HINT: Write milliseconds since the epoch, a timestamp such as '2024-05-31T23:59:59.999', or now()."
    )


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1h", 3_600_000),
        ("90 minutes", 5_400_000),
        ("1.5 s", 1_500),
        ("1 day 6 hours", 108_000_000),
        ("00:10", 600_000),
        ("250ms", 250),
        ("-1 week", -604_800_000),
        ("", None),
        ("1", None),
        ("1 fortnight", None),
        ("1h and more", None),
        (f"{'9' * 5000} days", None),
        (f"{'9' * 5000}:00", None),
    ],
)
def test_durations(text, milliseconds):
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["7 days", "1 day 6 hours", "1 hour 1 minute 1 second", "250 milliseconds"])
def test_a_duration_is_written_as_it_is_read(text):
    milliseconds = duration_ms(text)
    assert milliseconds is not None
    assert duration_text(milliseconds) == text


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("SELECT a AS of FROM t", "T"),
        ("SELECT a AS of, b FROM t", "T"),
        ("SELECT * FROM t AS of", "OF"),
        ("SELECT * FROM t AS of WHERE of.a = 1", "OF"),
        ("SELECT * FROM t of JOIN u ON of.a = u.a", "OF"),
    ],
)
def test_of_is_still_a_name(text, alias):
    select = parse_select(text)
    assert (select.relation.alias, select.as_of) == (alias, None)
