"""The page of functions and what is declared are the same."""

from pathlib import Path

import pytest

from holdfast.errors import UnknownFunction
from holdfast.runtime.functions.ksqldb_names import KSQLDB
from holdfast.runtime.functions.reference import page
from holdfast.runtime.functions.registry import function, functions
from holdfast.server.descriptions import described_function
from holdfast.server.listings import listed_functions

PAGE = Path(__file__).parents[3] / "docs" / "functions.md"


def test_the_page_is_what_is_declared() -> None:
    assert PAGE.read_text() == page(), "run: python -m holdfast.runtime.functions.reference > docs/functions.md"


def test_every_function_of_ksqldb_is_declared() -> None:
    assert set(functions()) >= KSQLDB


def test_a_function_is_described_in_ksqldbs_shape() -> None:
    shown = described_function("DESCRIBE FUNCTION elt;", function("ELT"))
    assert (shown["@type"], shown["name"], shown["type"], shown["path"]) == (
        "describe_function",
        "ELT",
        "SCALAR",
        "internal",
    )
    (form,) = shown["functions"]
    assert [(a["name"], a["type"], a["isVariadic"]) for a in form["arguments"]] == [
        ("number", "INTEGER", False),
        ("text", "STRING", True),
    ]
    assert form["returnType"] == "STRING"


def test_all_functions_are_listed_with_their_kind() -> None:
    listed = {each["name"]: each for each in listed_functions("SHOW FUNCTIONS;", ())["functions"]}
    assert listed["TOPK"]["type"] == "AGGREGATE"
    assert listed["LEN"] == {"name": "LEN", "type": "SCALAR", "category": "STRING"}
    assert listed.keys() == functions().keys()


def test_a_missing_function_is_reported() -> None:
    with pytest.raises(UnknownFunction, match='function "LENN" does not exist'):
        function("LENN")
