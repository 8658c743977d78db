"""Types of expressions, and errors that point at the place."""

import pytest

from holdfast.errors import BindError, HoldfastError, TypeMismatch, UnknownColumn, UnknownFunction
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.compiler.sql import render_filter
from holdfast.runtime.expressions.parse import parse_expression, parse_type
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.scope import Scope, ScopeColumn

SCOPE = Scope.of(
    (
        ScopeColumn(name, parse_type(type_), f"c{i}")
        for i, (name, type_) in enumerate(
            {
                "I": "INT", "L": "BIGINT", "D": "DOUBLE", "DEC": "DECIMAL(4, 2)", "S": "STRING", "B": "BOOLEAN",
                "TS": "TIMESTAMP", "DT": "DATE", "A": "ARRAY<INT>", "M": "MAP<STRING, BIGINT>",
                "ST": "STRUCT<NAME STRING, `n` INT>",
            }.items()
        )
    ),
    relation="ORDERS",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("I + I", "INT"),
        ("I / 2", "INT"),
        ("I + L", "BIGINT"),
        ("L + D", "DOUBLE"),
        ("I + DEC", "DECIMAL(13, 2)"),
        ("L * DEC", "DECIMAL(24, 2)"),
        ("DEC / DEC", "DECIMAL(11, 7)"),
        ("DEC % I", "DECIMAL(4, 2)"),
        ("DEC + 1.5", "DECIMAL(5, 2)"),
        ("CAST(1 AS DECIMAL(38, 10)) * CAST(1 AS DECIMAL(38, 10))", "DECIMAL(38, 6)"),
        ("D * DEC", "DOUBLE"),
        ("2147483647", "INT"),
        ("2147483648", "BIGINT"),
        ("-2147483648", "INT"),
        ("0.01", "DECIMAL(2, 2)"),
        ("10.", "DECIMAL(2, 0)"),
        ("1e3", "DOUBLE"),
        ("S + 'x'", "STRING"),
        ("S || S", "STRING"),
        ("I = D", "BOOLEAN"),
        ("TS > '2024-01-01'", "BOOLEAN"),
        ("DT = TS", "BOOLEAN"),
        ("NULL IS DISTINCT FROM I", "BOOLEAN"),
        ("CASE WHEN B THEN 1 ELSE L END", "BIGINT"),
        ("CASE WHEN B THEN NULL ELSE S END", "STRING"),
        ("A[1]", "INT"),
        ("M['k']", "BIGINT"),
        ("ST->NAME", "STRING"),
        ("ST->`n`", "INT"),
        ("ARRAY[1, L]", "ARRAY<BIGINT>"),
        ("MAP('a':=1)", "MAP<STRING, INT>"),
        ("STRUCT(x:=1, y:=S)", "STRUCT<X INT, Y STRING>"),
        ("COALESCE(NULL, I, D)", "DOUBLE"),
        ("LEN(S)", "INT"),
        ("ROUND(DEC)", "DECIMAL(2, 0)"),
        ("ROUND(D)", "BIGINT"),
        ("SUM(I)", "INT"),
        ("SUM(DEC)", "DECIMAL(4, 2)"),
        ("AVG(I)", "DOUBLE"),
        ("COUNT(*)", "BIGINT"),
        ("MIN(TS)", "TIMESTAMP"),
        ("CAST(A AS ARRAY<BIGINT>)", "ARRAY<BIGINT>"),
        ("I IN (1, '2', NULL)", "BOOLEAN"),
    ],
)
def test_types(text: str, type_: str) -> None:
    assert type_of(parse_expression(text), SCOPE) == parse_type(type_)


@pytest.mark.parametrize(
    ("text", "error", "message", "hint", "column"),
    [
        ("1 + amuont", UnknownColumn, 'column "AMUONT" does not exist in "ORDERS"', None, 5),
        ("1 + IX", UnknownColumn, 'column "IX" does not exist in "ORDERS"', 'Did you mean "I"?', 5),
        ("ST->NAM", UnknownColumn, 'column "NAM" does not exist in "ST"', 'Did you mean "NAME"?', 1),
        ("LENN(S)", UnknownFunction, 'function "LENN" does not exist', 'Did you mean "LEN"?', 1),
        ("2 * (S - 1)", TypeMismatch, "cannot compute STRING - INTEGER",
         "Arithmetic needs numbers; + also joins two STRINGs. You may need a CAST.", 6),
        ("B AND I > 'x'", TypeMismatch, "cannot compare I (INTEGER) with 'x' (STRING) using >",
         "You may need a CAST.", 7),
        ("A < A", TypeMismatch, "cannot compare A (ARRAY<INTEGER>) with A (ARRAY<INTEGER>) using <", None, 1),
        ("I = NULL", TypeMismatch, "a comparison with NULL is never true", "Write IS NULL or IS NOT NULL.", 5),
        ("NULL", TypeMismatch, "the type of NULL is not known here",
         "Give it a type, such as CAST(NULL AS STRING).", 1),
        ("NOT I", TypeMismatch, "NOT takes a BOOLEAN, not INTEGER", None, 5),
        ("S LIKE I", TypeMismatch, "LIKE takes a STRING, not INTEGER", None, 8),
        ("CASE WHEN B THEN 1 ELSE 'x' END", TypeMismatch, "CASE cannot hold both INTEGER and STRING",
         "Cast one of them, such as CAST(… AS STRING).", 25),
        ("CAST(B AS INT)", TypeMismatch, "cannot cast BOOLEAN to INTEGER", "Write CASE WHEN … THEN 1 ELSE 0 END.", 1),
        ("CAST(S AS ARRAY<INT>)", TypeMismatch, "cannot cast STRING to ARRAY<INTEGER>", None, 1),
        ("LEN(I)", TypeMismatch, "function LEN does not take (INTEGER)", "It takes (STRING) or (BYTES).", 1),
        ("COALESCE()", TypeMismatch, "function COALESCE does not take ()", "It takes (T, ...).", 1),
        ("S[1]", TypeMismatch, "STRING has no elements", None, 1),
        ("I->X", TypeMismatch, "INTEGER has no fields", None, 1),
        ("A['x']", TypeMismatch, "the index of an ARRAY must be a whole number", None, 3),
        ("9223372036854775808", TypeMismatch, "the number 9223372036854775808 does not fit BIGINT",
         "Write it as a DECIMAL, with a decimal point.", 1),
        ("I IN (1, 'x')", TypeMismatch, '"x" is not of type INTEGER', None, 10),
        ("I IN (1, '1e999999999')", TypeMismatch, '"1e999999999" is not of type INTEGER', None, 10),
        ("I IN (1, '1e-999999999')", TypeMismatch, '"1e-999999999" is not of type INTEGER', None, 10),
        ("I IN ('1e999999999')", TypeMismatch, '"1e999999999" is not of type INTEGER', None, 7),
        ("D IN ('1e999999999')", TypeMismatch, '"1e999999999" is not of type DOUBLE', None, 7),
        ("DEC IN ('1e-999999999')", TypeMismatch, '"1e-999999999" is not of type DECIMAL(4, 2)', None, 9),
        ("I IN (1, S)", TypeMismatch, "cannot compare I (INTEGER) with S (STRING) using =", "You may need a CAST.", 1),
    ],
)  # fmt: skip
def test_errors(text: str, error: type[HoldfastError], message: str, hint: str | None, column: int) -> None:
    with pytest.raises(error) as caught:
        type_of(parse_expression(text), SCOPE)
    assert caught.value.message == message
    if hint is not None:
        assert caught.value.hint == hint
    assert caught.value.position is not None
    assert caught.value.position.column == column


def test_a_name_in_two_relations_needs_its_qualifier() -> None:
    both = Scope.of(ScopeColumn("ID", parse_type("INT"), f"{q}0", q) for q in ("L", "R"))
    assert type_of(parse_expression("R.ID"), both) == parse_type("INT")
    with pytest.raises(BindError) as caught:
        type_of(parse_expression("ID"), both)
    assert caught.value.hint == "Write L.ID or R.ID."


def test_conditions_keep_comparisons_bare_for_indexes() -> None:
    written = render_filter(parse_expression("I = 5 AND NOT (S = 'x')"), SCOPE, Dialect.DUCKDB)
    assert written == "((c0 = (5)::INTEGER) AND (NOT COALESCE((c4 = 'x'), FALSE)))"
    with pytest.raises(TypeMismatch, match="a condition must be BOOLEAN, not INTEGER"):
        render_filter(parse_expression("I"), SCOPE, Dialect.DUCKDB)
