"""ksqlDB's messages and our errors: the same reason passes, another does not, whatever names both have."""

import pytest

from holdfast.errors import HoldfastError
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from holdfast.testing.case import ExpectedError
from holdfast.testing.refusals import mismatch
from tests.sql.build import EVERYTHING, catalog_of

CATALOG = catalog_of(EVERYTHING)
JAVA = "io.confluent.ksql.util.KsqlStatementException"


def error_of(statement: str) -> HoldfastError:
    with pytest.raises(HoldfastError) as raised:
        bind(parse(statement)[0].statement, CATALOG)
    return raised.value


@pytest.mark.parametrize(
    ("statement", "same", "other"),
    [
        ("SELECT nme FROM users", "SELECT column 'NME' cannot be resolved.", "SELECT column 'AGE' cannot be resolved."),
        ("SELECT nme FROM users", "SELECT column 'NME' cannot be resolved.", "Unknown format: NME"),
        (
            "SELECT * FROM users WHERE name > 3",
            "Error in WHERE expression: Cannot compare NAME (STRING) to 3 (INTEGER) with GREATER_THAN.",
            "Error in WHERE expression: Cannot compare NAME (STRING) to 3 (INTEGER) with LESS_THAN.",
        ),
        ("SELECT * FROM users WHERE name",
         "Type error in WHERE expression: Should evaluate to boolean but is NAME (STRING) instead.",
         "Type error in WHERE expression: Should evaluate to boolean but is NAME (BIGINT) instead."),
        ("SELECT ARRAY[1, 'x'] FROM users", 'invalid input syntax for type INTEGER: "x"',
         'invalid input syntax for type INTEGER: "y"'),
        ("SELECT GREATEST(1, 3000000000) FROM users",
         "Function 'greatest' cannot be resolved due to ambiguous method parameters (INTEGER, BIGINT).",
         "Function 'greatest' does not accept parameters (INTEGER, BIGINT)."),
        ("CREATE TABLE t AS SELECT page, user, COUNT(*) FROM views GROUP BY page",
         "Non-aggregate SELECT expression(s) not part of GROUP BY: USER",
         "Non-aggregate SELECT expression(s) not part of GROUP BY: TOOK"),
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='FOO')", "Unknown format: FOO",
         "a message that nobody knows"),
    ],
)  # fmt: skip
def test_a_message_of_ksqldb_asks_for_its_reason(statement: str, same: str, other: str) -> None:
    error = error_of(statement)
    assert mismatch(ExpectedError(type=JAVA, message=same), error) is None
    difference = mismatch(ExpectedError(type=JAVA, message=other), error)
    assert difference is not None
    assert ", got: " in difference


def test_a_message_without_words_of_ours_must_be_contained() -> None:
    error = error_of("SELECT nme FROM users")
    assert mismatch(ExpectedError(type=JAVA, message="does not exist in"), error) is None
    assert mismatch(ExpectedError(type=JAVA, message="is not there"), error) is not None
