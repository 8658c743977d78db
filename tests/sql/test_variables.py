import pytest

from holdfast.errors import BindError, SyntaxProblem
from holdfast.sql.syntax.statements import Define, Undefine
from holdfast.sql.syntax.variables import Script, Undefined


def texts(text: str, /, **variables: str) -> list[str]:
    return [parsed.text for parsed in Script(text, {name.upper(): value for name, value in variables.items()})]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("DROP STREAM ${name}", "DROP STREAM orders"),
        ("DROP STREAM ${NAME}", "DROP STREAM orders"),
        ("DROP STREAM `${name}`", "DROP STREAM `orders`"),
        ("SELECT '${name}', '${quote}' FROM s", "SELECT 'orders', 'it''s' FROM s"),
        ("SELECT ${text} FROM s", "SELECT 'it''s; -- ${name}' FROM s"),
        ("SELECT ${number}, ${negative} FROM s", "SELECT 5,  -1.5e3 FROM s"),
        ("SELECT 3 -${negative} FROM s", "SELECT 3 - -1.5e3 FROM s"),
        ("SELECT '$${name}' FROM s", "SELECT '${name}' FROM s"),
        ("SELECT '${nothing}' FROM s", "SELECT '${nothing}' FROM s"),
        ("SELECT 1 /* ${nothing}; */ FROM s -- ${nothing};", "SELECT 1 /* ${nothing}; */ FROM s"),
        ("SHOW STREAMS", "SHOW STREAMS"),
    ],
)
def test_where_a_variable_can_stand(written: str, read: str) -> None:
    values = {"name": "orders", "quote": "it's", "text": "'it''s; -- ${name}'", "number": "5", "negative": "-1.5e3"}
    assert texts(written + ";", **values) == [read]


@pytest.mark.parametrize("value", ["a b", "a; DROP STREAM b", "'a' OR 1", "(SELECT 1)", "", "a--", "1 + 1"])
def test_no_value_can_change_what_the_statement_is(value: str) -> None:
    with pytest.raises(BindError, match="cannot be used here"):
        texts("DROP STREAM ${name};", name=value)
    assert len(texts("SELECT '${name}' FROM s;", name=value)) == 1


def test_a_statement_is_read_with_the_variables_of_its_moment() -> None:
    variables: dict[str, str] = {}
    found = []
    for parsed in Script("DEFINE a = 'x'; DROP STREAM ${a}; UNDEFINE a; DROP STREAM ${a};", variables):
        found.append(parsed.text)
        match parsed.statement:
            case Define(name, value):
                variables[name.text] = value
            case Undefine(name):
                del variables[name.text]
        if len(found) == 3:
            break
    assert found == ["DEFINE a = 'x'", "DROP STREAM x", "UNDEFINE a"]
    with pytest.raises(Undefined, match='variable "a" is not defined'):
        texts("DROP STREAM ${a};")


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(Undefined) as raised:
        texts("DROP STREAM ${topc};", topic="a")
    assert raised.value.hint == 'Did you mean "TOPIC"?'


def test_positions_are_those_of_the_text_as_written() -> None:
    text = "SHOW STREAMS;\nSELECT ${long}, '${long}',\n  ${short} x y FROM s;"
    script = Script(text, {"LONG": "a_very_long_name_indeed", "SHORT": "n"})
    rest = iter(script)
    assert next(rest).position.line == 1
    with pytest.raises(SyntaxProblem) as raised:
        next(rest)
    position = script.placed(raised.value).position
    assert position is not None
    assert text[position.offset :].startswith("y FROM")
    assert (position.line, position.column) == (3, 14)
