"""Whether an error is the one that a test expects.

Our own errors are named by class or SQLSTATE, and their message must contain the expected text. A test written for
ksqlDB names a Java class and gives ksqlDB's words. Errors there and here are worded differently, so such a message is
matched by what it is about: every name that it quotes must be named by ours; when it quotes none, at least half of the
words that it writes in capitals (clauses, types, functions). What the statement makes counts as named.
"""

import re

from holdfast import errors
from holdfast.errors import HoldfastError, SyntaxProblem
from holdfast.testing.case import ExpectedError

JAVA = "."
"""Only the names of Java's classes have points."""
PARSER_ERROR = "ParseFailedException"

_QUOTED = re.compile(r"(?<!\w)'([^']+)'|`([^`]+)`|\"([^\"]+)\"")
_STATEMENT = re.compile(r"\bStatement: .*", re.DOTALL)
_TARGET = re.compile(r"CREATE\s.*?(?:STREAM|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?`?(\w+)", re.IGNORECASE)
_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
_WORD = re.compile(r"[A-Z0-9_]+")
_NOT_SUBJECTS = frozenset({"KSQL", "SQL", "ID"})


def mismatch(expected: ExpectedError, error: HoldfastError, statement: str) -> str | None:
    """Why the error of a statement is not the expected one; None when it is."""
    if expected.sqlstate is not None and expected.sqlstate != error.sqlstate:
        return f"SQLSTATE {expected.sqlstate} expected, {error.sqlstate} came: {one_line(error)}"
    if expected.type is not None and JAVA in expected.type:
        return _java_mismatch(expected, error, statement)
    if expected.type is not None and not _is_a(error, expected.type):
        return f"{expected.type} expected, {type(error).__name__} came: {one_line(error)}"
    if expected.message is not None and expected.message not in str(error):
        return f'an error with "{expected.message}" expected, this came: {one_line(error)}'
    return None


def _is_a(error: HoldfastError, name: str) -> bool:
    wanted = getattr(errors, name, None)
    return isinstance(wanted, type) and isinstance(error, wanted)


def _java_mismatch(expected: ExpectedError, error: HoldfastError, statement: str) -> str | None:
    assert expected.type is not None
    unread = isinstance(error, SyntaxProblem) and not expected.type.endswith(PARSER_ERROR)
    if unread:
        return f"the statement could not be read: {one_line(error)}"
    message = _STATEMENT.sub("", expected.message or "")
    if message in str(error):
        return None
    named = set(_WORD.findall(str(error).upper())) | {name.upper() for name in _TARGET.findall(statement)}
    quoted = {name for found in _QUOTED.findall(message) for text in found for name in _WORD.findall(text.upper())}
    lacking = sorted(quoted - named)
    if lacking:
        return f"an error about {', '.join(lacking)} expected, this came: {one_line(error)}"
    capitals = set(_CAPITALS.findall(message)) - _NOT_SUBJECTS
    if not quoted and len(capitals & named) * 2 < len(capitals):
        return f"an error about {', '.join(sorted(capitals))} expected, this came: {one_line(error)}"
    return None


def one_line(error: HoldfastError) -> str:
    return " ".join(str(error).split())
