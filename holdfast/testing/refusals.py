"""Whether an error is the one that a test expects.

Our own errors are named by class or SQLSTATE, and their message must contain the expected text. A test written for
ksqlDB names a Java class and gives ksqlDB's words: our error must contain them, or what `wording` has for them.
"""

from holdfast import errors
from holdfast.errors import HoldfastError, SyntaxProblem
from holdfast.testing.case import ExpectedError
from holdfast.testing.wording import in_our_words

JAVA = "."
"""Only the names of Java's classes have points."""
PARSER_ERROR = "ParseFailedException"


def mismatch(expected: ExpectedError, error: HoldfastError) -> str | None:
    """Why the error of a statement is not the expected one; None when it is."""
    if expected.sqlstate is not None and expected.sqlstate != error.sqlstate:
        return f"SQLSTATE {expected.sqlstate} expected, {error.sqlstate} came: {one_line(error)}"
    if expected.type is not None and JAVA in expected.type:
        return _java_mismatch(expected, error)
    if expected.type is not None and not _is_a(error, expected.type):
        return f"{expected.type} expected, {type(error).__name__} came: {one_line(error)}"
    if expected.message is not None and expected.message not in str(error):
        return f'an error with "{expected.message}" expected, this came: {one_line(error)}'
    return None


def _is_a(error: HoldfastError, name: str) -> bool:
    wanted = getattr(errors, name, None)
    return isinstance(wanted, type) and isinstance(error, wanted)


def _java_mismatch(expected: ExpectedError, error: HoldfastError) -> str | None:
    assert expected.type is not None
    if expected.message is None:
        unread = expected.type.endswith(PARSER_ERROR) and not isinstance(error, SyntaxProblem)
        return f"a syntax error expected, this came: {one_line(error)}" if unread else None
    told = str(error).upper()
    wanted = [(expected.message,), *in_our_words(expected.message)]
    if any(all(phrase.upper() in told for phrase in phrases) for phrases in wanted):
        return None
    shown = " … ".join(wanted[-1])
    return f'an error with "{shown}" expected, this came: {one_line(error)}'


def one_line(error: HoldfastError) -> str:
    return " ".join(str(error).split())
