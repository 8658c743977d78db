"""Compares an error with the one that a test expects.

Our own errors are named by class or SQLSTATE, and their message must contain the expected text. A test written for
ksqlDB names a Java class and ksqlDB's message: our error must contain that text, or its translation in `ksqldb_errors`.
"""

from holdfast import errors
from holdfast.errors import HoldfastError, SyntaxProblem
from holdfast.testing.case import ExpectedError
from holdfast.testing.ksqldb_errors import our_phrases

JAVA = "."
"""Only names of Java classes contain dots."""
PARSER_ERROR = "ParseFailedException"


def mismatch(expected: ExpectedError, error: HoldfastError) -> str | None:
    """Why an error does not match the expected one; None if it does."""
    if expected.sqlstate is not None and expected.sqlstate != error.sqlstate:
        return f"expected SQLSTATE {expected.sqlstate}, got {error.sqlstate}: {one_line(error)}"
    if expected.type is not None and JAVA in expected.type:
        return _java_mismatch(expected, error)
    if expected.type is not None and not _is_a(error, expected.type):
        return f"expected {expected.type}, got {type(error).__name__}: {one_line(error)}"
    if expected.message is not None and expected.message not in str(error):
        return f'expected an error with "{expected.message}", got: {one_line(error)}'
    return None


def _is_a(error: HoldfastError, name: str) -> bool:
    wanted = getattr(errors, name, None)
    return isinstance(wanted, type) and isinstance(error, wanted)


def _java_mismatch(expected: ExpectedError, error: HoldfastError) -> str | None:
    assert expected.type is not None
    if expected.message is None:
        wrong = expected.type.endswith(PARSER_ERROR) and not isinstance(error, SyntaxProblem)
        return f"expected a syntax error, got: {one_line(error)}" if wrong else None
    text = str(error).upper()
    wanted = [(expected.message,), *our_phrases(expected.message)]
    if any(all(phrase.upper() in text for phrase in phrases) for phrases in wanted):
        return None
    phrases_text = " … ".join(wanted[-1])
    return f'expected an error with "{phrases_text}", got: {one_line(error)}'


def one_line(error: HoldfastError) -> str:
    return " ".join(str(error).split())
