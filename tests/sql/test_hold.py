"""The statements about holds."""

import pytest

from holdfast.catalog.fold import apply
from holdfast.catalog.snapshot import EMPTY
from holdfast.errors import BadTime, BindError, DuplicateObject, SyntaxProblem, UnknownObject, WrongObjectKind
from holdfast.planner.commands import commands_for
from holdfast.sql.bind.hold import BoundAdvanceHold, BoundCreateHold, BoundRenameHold
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.parse import parse

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE u (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE HOLD h ON t;
"""


@pytest.fixture(scope="module")
def catalog():
    found = EMPTY
    for number, parsed in enumerate(parse(SETUP)):
        for command in commands_for(bind(parsed.statement, found), text=parsed.text, number=number):
            found = apply(found, command)
    return found


def bound(text, catalog):
    return bind(parse(text)[0].statement, catalog)


@pytest.mark.parametrize(
    ("lag", "ms"),
    [
        ("", 10_800_000),
        (" WITH (MAX LAG = '3h'::INTERVAL)", 10_800_000),
        (" WITH (MAX LAG '90 minutes')", 5_400_000),
        (" WITH (MAX LAG = INTERVAL '1 day 6 hours')", 108_000_000),
    ],
)
def test_create(catalog, lag, ms):
    made = bound(f"CREATE HOLD x ON t, u AT 17{lag};", catalog)
    assert isinstance(made, BoundCreateHold)
    assert (made.name, [table.name for table in made.on], made.max_lag_ms) == ("X", ["T", "U"], ms)
    assert made.at is not None
    assert made.at.millis == 17


def test_alter_and_drop(catalog):
    moved, home = bound("ALTER HOLD h ADVANCE TO 5;", catalog), bound("ALTER HOLD h ADVANCE;", catalog)
    assert isinstance(moved, BoundAdvanceHold)
    assert moved.to is not None
    assert moved.to.millis == 5
    assert isinstance(home, BoundAdvanceHold)
    assert home.to is None
    renamed = bound("ALTER HOLD h RENAME TO g;", catalog)
    assert isinstance(renamed, BoundRenameHold)
    assert renamed.name == "G"
    assert isinstance(bound("DROP HOLD IF EXISTS nothing;", catalog), BoundNothing)


def test_subscribe_with_a_hold(catalog):
    followed = bound("SUBSCRIBE t WITH (SNAPSHOT = false, HOLD = h);", catalog)
    assert isinstance(followed, BoundSubscribe)
    assert followed.hold is not None
    assert followed.hold.name == "H"
    assert not followed.snapshot


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE HOLD ON t;", BindError, "a hold needs a name"),
        ("CREATE HOLD h ON t;", DuplicateObject, 'hold "H" already exists'),
        ("CREATE HOLD t ON t;", DuplicateObject, 'table "T" already exists'),
        ("ALTER HOLD h RENAME TO t;", DuplicateObject, 'table "T" already exists'),
        ("CREATE HOLD x ON s;", WrongObjectKind, 'a hold cannot be on "S", which is a stream'),
        ("CREATE HOLD x ON t, t;", BindError, '"T" is listed twice'),
        ("CREATE HOLD x ON nothing;", UnknownObject, 'table or index "NOTHING" does not exist'),
        ("CREATE HOLD x ON t AT 'soon';", BadTime, "'soon' is not a valid time"),
        ("CREATE HOLD x ON t WITH (MAX LAG = 'long');", BadTime, "'long' is not a valid duration"),
        ("CREATE HOLD x ON t WITH (MAX LAG = '0s');", BadTime, "MAX LAG must be greater than zero"),
        ("CREATE HOLD x ON t WITH (MAX LAG = '3h'::TEXT);", BadTime, "TEXT is not a duration type"),
        ("ALTER HOLD hh ADVANCE;", UnknownObject, 'hold "HH" does not exist'),
        ("DROP HOLD nothing;", UnknownObject, 'hold "NOTHING" does not exist'),
        ("SUBSCRIBE u WITH (HOLD = h);", BindError, 'hold "H" is not on "U"'),
        ("SUBSCRIBE t WITH (HOLD = h) AS OF 5;", Exception, "AS OF and HOLD cannot be used together"),
        ("ALTER HOLD h ADD t;", SyntaxProblem, "ADD"),
        ("DROP HOLD;", SyntaxProblem, 'syntax error at or near ";"'),
        ("SHOW HOLDS x;", SyntaxProblem, 'syntax error at or near "x"'),
    ],
)
def test_refused(catalog, text, error, message):
    with pytest.raises(error) as found:
        bound(text, catalog)
    assert message in str(found.value)
    assert found.value.position is not None
