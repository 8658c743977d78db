import pickle
from typing import Any

import pytest

from holdfast.client.errors import RowRefused, ServerError, server_error
from holdfast.errors import BindError, HoldfastError, Position, UnknownColumn

BODY: dict[str, Any] = {
    "@type": "statement_error",
    "error_code": 40001,
    "message": "no such column",
    "detail": "It is not there.",
    "hint": "Look again.",
    "sqlstate": "42703",
    "position": {"line": 2, "column": 3, "offset": 10},
    "statementText": "SELECT x",
    "entities": [{"@type": "currentStatus"}],
}


def test_an_error_is_of_the_class_that_its_sqlstate_names() -> None:
    error = server_error(BODY)
    assert isinstance(error, ServerError)
    assert isinstance(error, UnknownColumn)
    assert isinstance(error, BindError)
    assert type(error).__name__ == "UnknownColumn"
    assert (error.message, error.detail, error.hint, error.sqlstate, error.position, error.code) == (
        "no such column",
        "It is not there.",
        "Look again.",
        "42703",
        Position(2, 3, 10),
        40001,
    )
    assert error.statement == "SELECT x"
    assert len(error.entities) == 1


@pytest.mark.parametrize("state", ["99999", None])
def test_an_error_of_a_state_that_is_not_known(state: str | None) -> None:
    error = server_error({"message": "odd", "sqlstate": state})
    assert type(error) is ServerError
    assert error.sqlstate == (state or HoldfastError.sqlstate)
    assert str(server_error({})) == "the server gave no reason"


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(server_error(BODY)))
    assert isinstance(error, UnknownColumn)
    assert error.hint == "Look again."
    assert pickle.loads(pickle.dumps(RowRefused({"message": "no"}, 7))).row == 7
