"""Law: the text of a tree, read back, is that tree."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.parse import parse_expression, parse_named
from holdfast.runtime.expressions.text import format_expression, format_named
from holdfast.runtime.expressions.tree import Expression, Operator
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct, StructField

names = st.one_of(
    st.sampled_from(["A", "KEY", "MAP", "ARRAY", "STRUCT", "SELECT", "NULL", "a b", "x`y", 'q"q', "ÄÖ", "1", "DAYS"]),
    st.text(min_size=1, max_size=4),
)
plain = st.sampled_from(["F", "LEN", "REPLACE", "DATEADD", "MAP2"])


def types() -> st.SearchStrategy[SqlType]:
    base = st.one_of(st.sampled_from(list(Scalar)), st.just(Decimal(10, 2)))
    return st.recursive(
        base,
        lambda inner: st.one_of(
            inner.map(Array),
            st.builds(Map, inner, inner),
            st.lists(st.builds(StructField, names, inner), max_size=2).map(lambda fields: Struct(tuple(fields))),
        ),
        max_leaves=3,
    )


digits = st.text("0123456789", min_size=1, max_size=5)
leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(tree.NullLiteral),
    st.builds(tree.BooleanLiteral, st.booleans()),
    st.builds(tree.IntegerLiteral, st.integers(min_value=0)),
    st.builds(lambda a, b: tree.DecimalLiteral(f"{a}.{b}"), digits, digits),
    st.builds(lambda a, b: tree.DoubleLiteral(f"{a}E-{b}"), digits, digits),
    st.builds(tree.StringLiteral, st.text(max_size=6)),
    st.builds(tree.ColumnRef, names, st.none() | names),
)


def nodes(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def some(least: int) -> st.SearchStrategy[tuple[Expression, ...]]:
        return st.lists(inner, min_size=least, max_size=3).map(tuple)

    lambdas = st.builds(tree.Lambda, st.lists(names, min_size=1, max_size=3).map(tuple), inner)
    whens = st.lists(st.builds(tree.When, inner, inner), min_size=1, max_size=2).map(tuple)
    named = st.builds(tree.NamedExpression, names, inner)
    return st.one_of(
        st.builds(tree.Binary, st.sampled_from(list(Operator)), inner, inner),
        st.builds(tree.Not, inner),
        st.builds(tree.Negate, inner),
        st.builds(tree.IsNull, inner, st.booleans()),
        st.builds(tree.Between, inner, inner, inner, st.booleans()),
        st.builds(tree.InList, inner, some(1), st.booleans()),
        st.builds(tree.Like, inner, inner, st.none() | st.characters(), st.booleans()),
        st.builds(tree.Case, st.none() | inner, whens, st.none() | inner),
        st.builds(tree.Cast, inner, types()),
        st.builds(tree.Call, plain, st.lists(inner | lambdas, max_size=3).map(tuple)),
        st.builds(tree.Call, plain, st.just(()), st.just(True)),
        st.builds(tree.Subscript, inner, inner),
        st.builds(tree.FieldRef, inner, names),
        st.builds(tree.ArrayLiteral, some(0)),
        st.lists(st.builds(tree.MapEntry, inner, inner), max_size=2).map(lambda e: tree.MapLiteral(tuple(e))),
        st.lists(named, max_size=2).map(lambda f: tree.StructLiteral(tuple(f))),
    )


@settings(max_examples=400, deadline=None)
@given(st.recursive(leaves, nodes, max_leaves=8))
def test_reading_the_text_gives_the_tree_back(expression: Expression) -> None:
    assert parse_expression(format_expression(expression)) == expression


@settings(max_examples=50, deadline=None)
@given(names, leaves)
def test_named_expressions_too(name: str, expression: Expression) -> None:
    named = tree.NamedExpression(name, expression)
    assert parse_named(format_named(named)) == named


def test_every_expression_of_ksqldbs_plans_is_read_and_written_alike(conformance: Path) -> None:
    seen = set()
    for file in (conformance / "ksqldb" / "plans").glob("*.jsonl"):
        for line in file.open():
            seen.update(_select_expressions(json.loads(line)))
    # ksqlDB writes `MAP` bare and the fields of a cast's type without quotes.
    differ = [text for text in seen if format_named(parse_named(text)) != text]
    assert len(seen) > 500
    assert all("STRUCT<" in text or "MAP" in text for text in differ), differ


def _select_expressions(node: object) -> set[str]:
    if isinstance(node, list):
        return {text for item in node for text in _select_expressions(item)}
    if not isinstance(node, dict):
        return set()
    found = set(node.get("selectExpressions") or ())
    return found | {text for item in node.values() for text in _select_expressions(item)}
