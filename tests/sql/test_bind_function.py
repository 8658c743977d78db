"""CREATE FUNCTION: what is refused, with the place and the reason; the code is read, never run."""

import pytest

from holdfast.catalog.commands import decode_command, encode_command
from holdfast.catalog.fold import apply, fold
from holdfast.catalog.objects import QueryState
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import HoldfastError
from holdfast.planner.commands import commands_for
from holdfast.runtime.functions import user
from holdfast.sql.bind.function import BoundCreateFunction
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

TWICE = "CREATE FUNCTION twice(n INT) RETURNS INT LANGUAGE PYTHON AS 'def twice(n): return n';"


def after(text: str, catalog: Catalog = EMPTY) -> Catalog:
    """The catalog after statements, by way of the bytes of their commands."""
    for parsed in statements(text):
        for command in commands_for(bind(parsed.statement, catalog), text=parsed.text, number=0):
            catalog = apply(catalog, decode_command(*encode_command(command)))
    return catalog


def refusal(text: str, catalog: Catalog = EMPTY) -> HoldfastError:
    parsed = next(iter(statements(text)))
    with pytest.raises(HoldfastError) as caught:
        bind(parsed.statement, catalog)
    return caught.value


@pytest.mark.parametrize(
    ("python", "says", "detail"),
    [
        ("def twice(n) return n", "the Python source of function TWICE cannot be parsed", "Line 1"),
        ("def other(n): return n", "the Python source of function TWICE does not define it", None),
        ("def twice(a, b): return a", "the Python function TWICE takes 2 arguments but is called with 1", None),
        ("class Twice: pass", "the class of aggregate TWICE is missing partial, merge, result", None),
    ],
)
def test_python_that_cannot_be_the_function(python: str, says: str, detail: str | None) -> None:
    error = refusal(f"CREATE FUNCTION twice(n INT) RETURNS INT LANGUAGE PYTHON AS '{python}';")
    assert error.message == says
    assert error.position is not None
    assert error.position.column > 60
    assert detail is None or (error.detail or "").startswith(detail)


def test_code_is_not_run_when_it_is_bound() -> None:
    text = "CREATE FUNCTION f(n INT) RETURNS INT LANGUAGE PYTHON AS 'raise SystemExit\ndef f(n): return n';"
    bound = bind(next(iter(statements(text))).statement, EMPTY)
    assert isinstance(bound, BoundCreateFunction)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CREATE FUNCTION ucase(n INT) RETURNS INT LANGUAGE PYTHON AS '';", "UCASE is a built-in function"),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE PYTHON AS '';", "a function needs at least one argument"),
        ("CREATE FUNCTION f(a INT, a INT) RETURNS INT LANGUAGE PYTHON AS '';", 'the argument "A" is declared twice'),
        ("CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE JAVA AS '';", "functions cannot be written in JAVA"),
        ("CREATE FUNCTION `f g`(a INT) RETURNS INT LANGUAGE PYTHON AS '';", '"f g" cannot be the name of a function'),
        ("DROP FUNCTION f;", 'function "F" does not exist'),
        ("DROP FUNCTION ucase;", "UCASE is built in and cannot be dropped"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    error = refusal(text)
    assert error.message == says
    assert error.position is not None


def test_a_name_is_taken_once() -> None:
    catalog = after(TWICE)
    assert refusal(TWICE, catalog).message == 'function "TWICE" already exists'
    again = TWICE.replace("FUNCTION", "FUNCTION IF NOT EXISTS", 1)
    assert isinstance(bind(next(iter(statements(again))).statement, catalog), BoundNothing)


def test_plans_have_the_version_that_a_name_meant() -> None:
    stream = "CREATE STREAM s (n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    catalog = after(TWICE + stream)
    first = catalog.functions["TWICE"].versioned
    catalog = after("CREATE STREAM a AS SELECT twice(n) AS n FROM s;", catalog)
    replaced = TWICE.replace("CREATE", "CREATE OR REPLACE").replace("return n", "return 2 * n")
    catalog = after(replaced + "CREATE STREAM b AS SELECT TWICE(n) AS n FROM s;", catalog)
    second = catalog.functions["TWICE"].versioned
    plans = {query.sink: query.plan.decode() for query in catalog.queries.values()}
    assert first != second
    assert f"`{first}`(N)" in plans["A"]
    assert f"`{second}`(N)" in plans["B"]
    dropped = after("DROP FUNCTION twice;", catalog)
    assert refusal("SELECT twice(n) FROM s EMIT CHANGES;", dropped).message == 'function "TWICE" does not exist'


@pytest.mark.parametrize(
    ("select", "says"),
    [
        ("twice('x')", "function TWICE does not take (STRING)"),
        ("TRANSFORM(ARRAY[n], x => twice(x))", "function TWICE cannot be called inside a lambda"),
    ],
)
def test_calls_that_are_refused(select: str, says: str) -> None:
    catalog = after(TWICE + "CREATE STREAM s (n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');")
    error = refusal(f"CREATE STREAM p AS SELECT {select} AS m FROM s;", catalog)
    assert error.message == says
    assert error.position is not None


SPAN = (
    "CREATE FUNCTION span(n INT) RETURNS INT LANGUAGE PYTHON AS 'class Span:\n"
    " def partial(self, n): return 0\n def merge(self, a, b): return a\n def result(self, s): return s';"
)


def test_an_aggregate_of_a_user_is_for_streams() -> None:
    table = "CREATE TABLE t (id INT PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
    error = refusal("CREATE TABLE u AS SELECT n, SPAN(n) AS s FROM t GROUP BY n;", after(SPAN + table))
    assert error.message == "the aggregate SPAN is not supported over a table"
    assert error.position is not None


@pytest.mark.parametrize(
    ("window", "emit"),
    [
        ("SESSION (1 SECOND)", "CHANGES"),
        ("TUMBLING (SIZE 1 SECOND)", "FINAL"),
    ],
)
def test_an_aggregate_of_a_user_is_not_for_windows_that_close(window: str, emit: str) -> None:
    catalog = after(SPAN + "CREATE STREAM s (id INT KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');")
    text = f"CREATE TABLE u AS SELECT id, SPAN(n) AS s FROM s WINDOW {window} GROUP BY id EMIT {emit};"
    error = refusal(text, catalog)
    assert error.message == "the aggregate SPAN is not supported in windows that close yet"
    assert error.position is not None
    assert error.position.column == text.index("SPAN") + 1
    open_ones = "CREATE TABLE u AS SELECT id, SPAN(n) AS s FROM s WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY id;"
    assert after(open_ones, catalog).queries
    assert after(open_ones.replace("1 SECOND)", "1 SECOND, RETENTION 1 DAY)"), catalog).queries


def written(text: str, catalog: Catalog) -> list[tuple[bytes, bytes]]:
    parsed = next(iter(statements(text)))
    return [encode_command(c) for c in commands_for(bind(parsed.statement, catalog), text=parsed.text, number=0)]


def test_every_version_is_known_again_after_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(TWICE, EMPTY)
    catalog = fold(decode_command(*record) for record in first)
    both = first + written(TWICE.replace("CREATE", "CREATE OR REPLACE").replace("return n", "return -n"), catalog)
    versions = [catalog.functions["TWICE"].versioned]
    versions.append(fold(decode_command(*record) for record in both).functions["TWICE"].versioned)
    monkeypatch.setattr(user, "_KNOWN", {})
    again = fold(decode_command(*record) for record in both)
    assert [user.known(version).source for version in versions] == ["def twice(n): return n", "def twice(n): return -n"]
    assert again.functions["TWICE"].versioned == versions[1]


def test_a_function_in_an_unknown_language_is_put_aside() -> None:
    ((key, value),) = written(TWICE, EMPTY)
    catalog = fold([decode_command(key, value.replace(b'"PYTHON"', b'"RUST"'))])
    (entry,) = catalog.queries.values()
    assert entry.state is QueryState.INCOMPATIBLE
    assert entry.reason == "function TWICE is written in RUST, which this release cannot run"
    assert "TWICE" not in catalog.functions
