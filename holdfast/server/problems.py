"""Errors as HTTP responses: ksqlDB's fields and our own.

    {"@type": "generic_error", "error_code": 40000, "message": "...",
     "detail": "...", "hint": "...", "sqlstate": "42601", "position": {"line": 1, "column": 8, "offset": 7}}

A statement's error is a `statement_error`, which adds `statementText` and `entities`, the results of the statements
before it. Fields without a value are left out.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from holdfast.errors import (
    AssertionFailed,
    BackupError,
    BindError,
    ConfigError,
    HoldfastError,
    NotSupported,
    PlanError,
    ReadError,
    RequestTimeout,
    SyntaxProblem,
    TopicChanged,
    TransactionProblem,
)

Json = dict[str, Any]

USER_ERRORS = (
    SyntaxProblem,
    BindError,
    NotSupported,
    ReadError,
    ConfigError,
    PlanError,
    TopicChanged,
    TransactionProblem,
    BackupError,
)
"""Errors that the request caused; all others are failures of the server or Kafka."""


class Code(IntEnum):
    """ksqlDB's error codes: the HTTP status, then two digits."""

    BAD_REQUEST = 40000
    BAD_STATEMENT = 40001
    WRONG_ENDPOINT = 40002
    TOO_MANY_PUSH_QUERIES = 40003
    FORBIDDEN = 40300
    NOT_FOUND = 40400
    WRONG_METHOD = 40500
    NOT_ACCEPTABLE = 40600
    TOO_LARGE = 41300
    WRONG_CONTENT_TYPE = 41500
    ASSERTION_FAILED = 41700
    SERVER_ERROR = 50000
    SHUTTING_DOWN = 50303
    TIMED_OUT = 50400

    @property
    def status(self) -> int:
        return self // 100


class Problem(Exception):
    """An error response."""

    def __init__(self, code: int, error: HoldfastError | str, *, hint: str | None = None, **more: Any) -> None:
        self.code = code
        self.error = error if isinstance(error, HoldfastError) else HoldfastError(error, hint=hint)
        self.more = more
        super().__init__(str(self.error))

    @property
    def status(self) -> int:
        return self.code // 100

    @property
    def body(self) -> Json:
        kind = "statement_error" if "statementText" in self.more else "generic_error"
        # An error of the request itself has no SQLSTATE.
        sqlstate = None if type(self.error) is HoldfastError else self.error.sqlstate
        return {"@type": kind, "error_code": self.code, **error_fields(self.error, sqlstate), **self.more}


def error_fields(error: HoldfastError, sqlstate: str | None) -> Json:
    position = error.position
    fields: Mapping[str, Any] = {
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "sqlstate": sqlstate,
        "position": position and {"line": position.line, "column": position.column, "offset": position.offset},
    }
    return {name: value for name, value in fields.items() if value is not None}


def code_of(error: HoldfastError) -> Code:
    if isinstance(error, AssertionFailed):
        return Code.ASSERTION_FAILED
    if isinstance(error, RequestTimeout):
        return Code.TIMED_OUT
    return Code.BAD_STATEMENT if isinstance(error, USER_ERRORS) else Code.SERVER_ERROR


def statement_problem(error: HoldfastError, text: str, entities: Sequence[Json], code: Code | None = None) -> Problem:
    return Problem(code or code_of(error), error, statementText=text, entities=list(entities))


def too_deep() -> NotSupported:
    return NotSupported("the statement is nested too deeply", hint="Use fewer levels of parentheses.")
