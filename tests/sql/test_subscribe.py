"""SUBSCRIBE: its words, what it is bound to, and what is refused."""

import pytest

from holdfast.errors import (
    BadTime,
    BindError,
    HoldfastError,
    NotSupported,
    SyntaxProblem,
    UnknownObject,
    WrongObjectKind,
)
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.parse import parse

from .build import EVERYTHING, catalog_of

CATALOG = catalog_of(EVERYTHING)


def bound(text: str) -> BoundSubscribe:
    found = bind(parse(text)[0].statement, CATALOG)
    assert isinstance(found, BoundSubscribe)
    return found


def test_the_clauses_come_in_any_order():
    one = parse(
        "SUBSCRIBE TO users WITH (SNAPSHOT = false, PROGRESS) AS OF AT LEAST 5 UP TO 9 ENVELOPE UPSERT (KEY (id))"
    )
    other = parse(
        "SUBSCRIBE users ENVELOPE UPSERT (KEY (id)) UP TO 9 AS OF AT LEAST 5 WITH (SNAPSHOT false, PROGRESS = true)"
    )
    assert one[0].statement == other[0].statement
    assert isinstance(one[0].statement, sql.Subscribe)


def test_an_object_stands_for_all_of_its_columns():
    whole, query = bound("SUBSCRIBE users;"), bound("SUBSCRIBE TO (SELECT * FROM users);")
    assert [c.name for c in whole.select.columns] == [c.name for c in query.select.columns]
    assert (whole.snapshot, whole.progress, whole.as_of, whole.up_to, whole.key) == (True, False, None, None, ())


def test_options_times_and_key():
    found = bound("SUBSCRIBE (SELECT name, id FROM users) WITH (SNAPSHOT = false, PROGRESS) AS OF 5 UP TO 9;")
    assert (found.snapshot, found.progress) == (False, True)
    assert found.as_of is not None
    assert (found.as_of.moment.millis, found.up_to.millis if found.up_to else None) == (5, 9)
    assert bound("SUBSCRIBE (SELECT name, id FROM users) ENVELOPE UPSERT (KEY (id));").key == (1,)


def test_its_words_are_names_elsewhere():
    (parsed,) = parse("SELECT subscribe, up, envelope AS upsert FROM t envelope;")
    assert isinstance(parsed.statement, sql.Select)


REFUSED = [
    ("SUBSCRIBE views", WrongObjectKind, 'SUBSCRIBE needs a table, but "VIEWS" is a stream',
     "Follow it with SELECT … EMIT CHANGES.", 11),
    ("SUBSCRIBE (SELECT * FROM views)", WrongObjectKind, 'SUBSCRIBE needs a table, but "VIEWS" is a stream',
     "Follow it with SELECT … EMIT CHANGES.", 26),
    ("SUBSCRIBE TO user", UnknownObject, 'stream or table "USER" does not exist', 'Did you mean "USERS"?', 14),
    ("SUBSCRIBE users WITH (PROGRES)", BindError, 'SUBSCRIBE has no option "PROGRES"', 'Did you mean "PROGRESS"?', 23),
    ("SUBSCRIBE users WITH (PROGRESS = 1)", BindError, "PROGRESS must be true or false", None, 23),
    ("SUBSCRIBE users WITH (PROGRESS, PROGRESS)", BindError, 'option "PROGRESS" is specified twice', None, 33),
    ("SUBSCRIBE users AS OF 'soon'", BadTime, "'soon' is not a valid time",
     "Write milliseconds since the epoch, a timestamp such as '2024-05-31T23:59:59.999', or now().", 23),
    ("SUBSCRIBE users UP TO TRUE", BadTime, "true is not a valid time",
     "Write milliseconds since the epoch, a timestamp such as '2024-05-31T23:59:59.999', or now().", 23),
    ("SUBSCRIBE users AS OF 1 AS OF 2", SyntaxProblem, "AS OF is specified twice", None, 25),
    ("SUBSCRIBE (SELECT id FROM users EMIT CHANGES)", NotSupported,
     "EMIT CHANGES cannot be used in the query of a SUBSCRIBE",
     "Leave it out: a subscription ends at UP TO.", 12),
    ("SUBSCRIBE (SELECT id FROM users AS OF 3)", NotSupported, "AS OF cannot be used in the query of a SUBSCRIBE",
     "Write AS OF after the parentheses: it is the time to begin at.", 12),
    ("SUBSCRIBE (SELECT id FROM users LIMIT 3)", NotSupported, "LIMIT cannot be used in the query of a SUBSCRIBE",
     "Leave it out, or choose the rows with ORDER BY.", 12),
    ("SUBSCRIBE (SELECT id FROM users) ENVELOPE UPSERT (KEY (nam))", BindError,
     'column "NAM" does not exist in "USERS"', "Known columns are: ID.", 56),
    ("SUBSCRIBE users ENVELOPE UPSERT (KEY (name))", BindError, 'KEY does not identify the rows of "USERS"',
     "Add all key columns of the table to KEY: ID.", 39),
    ("SUBSCRIBE users ENVELOPE UPSERT (KEY (id, id))", BindError, 'key column "ID" is specified twice', None, 43),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message", "hint", "column"), REFUSED, ids=[text for text, *_ in REFUSED])
def test_what_is_refused(text: str, kind: type[HoldfastError], message: str, hint: str | None, column: int) -> None:
    with pytest.raises(kind) as refused:
        bind(parse(text)[0].statement, CATALOG)
    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert refused.value.position is not None
    assert refused.value.position.column == column
