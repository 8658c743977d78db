"""Reading expressions, types and schemas, and what is said when they cannot be read."""

import pytest

from holdfast.errors import NotYetSupported, SyntaxProblem, UnknownObject
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.parse import parse_expression, parse_named, parse_schema, parse_type
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.transform import custom_types
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Struct, StructField


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1 + 2 * 3 - 4", "((1 + (2 * 3)) - 4)"),
        ("a || b + 1", "(A || (B + 1))"),
        ("NOT a = 1 AND b OR c", "(((NOT (A = 1)) AND B) OR C)"),
        ("-a * b[1]->c", "(-A * B[1]->C)"),
        ("- -a", "- -A"),
        ("(-a)[1]", "(-A)[1]"),
        ("a != 1", "(A <> 1)"),
        ("a NOT BETWEEN 1 AND 2 AND b", "((A NOT BETWEEN 1 AND 2) AND B)"),
        ("a not in (1, 'x')", "(A NOT IN (1, 'x'))"),
        ("a LIKE 'x!%' ESCAPE '!'", "(A LIKE 'x!%' ESCAPE '!')"),
        ("a IS NOT NULL", "(A IS NOT NULL)"),
        ("a IS NOT DISTINCT FROM b", "(A IS NOT DISTINCT FROM B)"),
        ("case when a then 1 else 2 end", "(CASE WHEN A THEN 1 ELSE 2 END)"),
        ("CASE a WHEN 1 THEN 'x' END", "(CASE A WHEN 1 THEN 'x' END)"),
        ("cast(a as varchar(10))", "CAST(A AS STRING)"),
        ("a::decimal(4,2)", "CAST(A AS DECIMAL(4, 2))"),
        ("timestamp '2024-01-01'", "CAST('2024-01-01' AS TIMESTAMP)"),
        ("count(*) + len('it''s')", "(COUNT(*) + LEN('it''s'))"),
        ("array[1, 2][-1]", "ARRAY[1, 2][-1]"),
        ("map('k' := struct(a := 1))", "MAP('k':=STRUCT(A:=1))"),
        ("f(x => x + 1, (a, b) => a)", "F((X) => (X + 1), (A, B) => A)"),
        ("dateadd(days, 1, d)", "DATEADD(DAYS, 1, D)"),
        ('`a b` + "C""d"', '(`a b` + `C"d`)'),
        ("t.`x`", "T.`x`"),
        ("1.50 + .5 + 1e3", "((1.50 + .5) + 1e3)"),
        ("1 -- one\n + /* two */ 2", "(1 + 2)"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    parsed = parse_expression(text)
    assert format_expression(parsed) == canonical
    assert parse_expression(canonical) == parsed


@pytest.mark.parametrize(
    "name", ["key", "timestamp", "date", "time", "value", "type", "headers", "map", "struct", "array", "escape", "id"]
)
def test_words_that_are_also_names(name: str) -> None:
    assert parse_expression(f"{name} < 3") == parse_expression(f"`{name.upper()}` < 3")
    assert parse_expression(f"a->{name}") == tree.FieldRef(tree.ColumnRef("A"), name.upper())


def test_positions_say_where_a_node_begins() -> None:
    parsed = parse_expression("a +\n  LEN(b)")
    assert isinstance(parsed, tree.Binary)
    assert parsed.right.position is not None
    assert (parsed.right.position.line, parsed.right.position.column, parsed.right.position.offset) == (2, 3, 6)


@pytest.mark.parametrize(
    ("text", "message", "hint", "column"),
    [
        ("a FORM b", 'syntax error at or near "FORM"', "Expected AS or an operator.", 3),
        ("a + AS b", 'syntax error at or near "AS"', "Expected an expression.", 5),
        ("a +", "syntax error at the end of the text", "Expected an expression.", 4),
        ("a AS 5", 'syntax error at or near "5"', "Expected a name.", 6),
        ("CASE WHEN a 1", 'syntax error at or near "1"', "Expected THEN or an operator.", 13),
        ("CAST(a AS 5)", 'syntax error at or near "5"', "Expected a type.", 11),
        ("'abc", "unterminated string", "End it with a single quote.", 1),
        ("a + `b", "unterminated quoted name", "End it with `.", 5),
        ("a /* b", "unterminated comment", "End it with */.", 3),
        ("1st", 'a name cannot start with a digit: "1st"', "Write it in back-quotes: `1st`.", 1),
        ("a ? b", 'unexpected character "?"', None, 3),
        ("f((a + 1) => a)", "the parameters of a lambda must be names", None, 4),
        ("a LIKE 'b' ESCAPE 'cc'", "ESCAPE must be a single character", None, 19),
    ],
)
def test_errors_of_named_expressions(text: str, message: str, hint: str | None, column: int) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_named(text)
    assert caught.value.message == message
    assert caught.value.hint == hint
    assert caught.value.position is not None
    assert caught.value.position.column == column


def test_a_reserved_word_is_no_name() -> None:
    with pytest.raises(SyntaxProblem, match='syntax error at or near "select"'):
        parse_expression("select")


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("int", Scalar.INTEGER),
        ("TEXT", Scalar.STRING),
        ("varchar", Scalar.STRING),
        ("TIMESTAMP WITH TIME ZONE", Scalar.TIMESTAMP),
        ("double precision", Scalar.DOUBLE),
        ("DECIMAL(4)", Decimal(4, 0)),
        ("VARCHAR(STRING)", Scalar.STRING),
        ("VARCHAR(8)", Scalar.STRING),
        ("ARRAY<MAP<STRING, DECIMAL(4,2)>>", Array(Map(Scalar.STRING, Decimal(4, 2)))),
        ("STRUCT<`a` INT, b STRUCT< >>", Struct((StructField("a", Scalar.INTEGER), StructField("B", Struct(()))))),
        ("STRUCT<>", Struct(())),
    ],
)
def test_types(text: str, type_: object) -> None:
    assert parse_type(text) == type_
    assert parse_type(str(parse_type(text))) == type_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DECIMAL", "type DECIMAL takes a precision and a scale"),
        ("DECIMAL(0, 0)", "the precision of a DECIMAL must be between 1 and 38, not 0"),
        ("DECIMAL(3, 4)", "the scale of a DECIMAL must be at most its precision: DECIMAL(3, 4)"),
        ("INT(3)", "type INT takes no parameters"),
        ("DATE WITH TIME ZONE", "only TIMESTAMP can be followed by WITH TIME ZONE"),
        ("INT(STRING)", "only VARCHAR can be followed by (STRING)"),
    ],
)
def test_wrong_types(text: str, message: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_type(text)
    assert caught.value.message == message


def test_a_decimal_that_is_too_long() -> None:
    with pytest.raises(NotYetSupported) as caught:
        parse_type("DECIMAL(39, 1)")
    assert caught.value.message == "a DECIMAL has at most 38 digits, not 39"
    assert caught.value.missing == "type DECIMAL of more than 38 digits"


def test_unknown_types_and_types_of_the_user() -> None:
    with pytest.raises(UnknownObject) as caught:
        parse_type("strin")
    assert caught.value.hint == 'Did you mean "STRING"?'
    token = custom_types.set({"ADDRESS": Struct((StructField("CITY", Scalar.STRING),))})
    try:
        assert parse_type("ARRAY<address>") == Array(Struct((StructField("CITY", Scalar.STRING),)))
    finally:
        custom_types.reset(token)


def test_schemas() -> None:
    schema = parse_schema(
        "`ID` INTEGER KEY, k STRING PRIMARY KEY, KEY TIMESTAMP, h BYTES HEADER('x'), hs BYTES HEADERS"
    )
    assert schema.columns == (
        Column("ID", Scalar.INTEGER, Role.KEY),
        Column("K", Scalar.STRING, Role.KEY),
        Column("KEY", Scalar.TIMESTAMP),
        Column("H", Scalar.BYTES, Role.HEADERS, "x"),
        Column("HS", Scalar.BYTES, Role.HEADERS),
    )
    assert parse_schema(str(schema)) == schema
    assert parse_schema("").columns == ()
