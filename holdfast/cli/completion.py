"""Completion: keywords come from the grammar, names from the server."""

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from holdfast.cli.local import LOCALS
from holdfast.cli.names import CompletionNames
from holdfast.cli.outputs import Format
from holdfast.cli.split import split_statements
from holdfast.sql.properties.session import KNOWN as SESSION_PROPERTIES
from holdfast.sql.properties.with_clause import COMMON
from holdfast.sql.syntax.expect import Expected, Kind, expected_after
from holdfast.sql.syntax.synopsis import synopses
from holdfast.types import Scalar

Choice = tuple[str, str]
"""A text to insert, and its description."""

WORD = re.compile(r"[\w@`\"\\?]*\Z")
IN_FILE_NAME = re.compile(r"\s*(?:run\s+script|spool)\s+'(?P<path>[^']*)\Z", re.IGNORECASE)
IN_PROPERTY_NAME = re.compile(r"\s*(?:set|unset)\s+'(?P<name>[^']*)\Z", re.IGNORECASE)
LOCAL_WORDS = ("HELP", "RUN SCRIPT", "SPOOL", "OUTPUT", "CLEAR", "EXIT", "\\?", "\\d", "\\q")
TYPES = (*(scalar.value for scalar in Scalar), "DECIMAL")


class SqlCompleter(Completer):
    """Completes the word before the cursor. `names` is called each time, because names change."""

    def __init__(self, names: Callable[[], CompletionNames]) -> None:
        self._names = names
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before, after = current_statement(document.text_before_cursor, document.text_after_cursor)
        if (path := IN_FILE_NAME.match(before)) is not None:
            yield from self._paths.get_completions(Document(path["path"]), complete_event)
        elif (name := IN_PROPERTY_NAME.match(before)) is not None:
            yield from matching(name["name"], ((known, "property") for known in SESSION_PROPERTIES))
        else:
            word = WORD.search(before)
            assert word is not None
            yield from matching(word.group(), self._choices(before[: word.start()], after))

    def _choices(self, before: str, after: str) -> Iterator[Choice]:
        words = before.upper().split()
        if words[:1] == ["HELP"]:
            yield from (
                (each, "statement") for each in sorted({s.text.split()[0] for s in synopses()}) if each.isalpha()
            )
        elif words == ["OUTPUT"]:
            yield from ((each, "output") for each in Format)
        elif words[:1] and words[0] in {known.synopsis.split()[0] for known in LOCALS}:
            return
        else:
            yield from choices(expected_after(before), self._names(), f"{before} {after}")
            if not words:
                yield from ((each, "command") for each in LOCAL_WORDS)


def current_statement(before: str, after: str) -> tuple[str, str]:
    """The statement around the cursor, split at the cursor."""
    found = [statement for statement in split_statements(before) if not statement.ended]
    following = next(split_statements(after), None)
    return (before[found[-1].start :] if found else ""), (following.text if following else "")


def choices(expected: Expected, names: CompletionNames, statement: str) -> Iterator[Choice]:
    """Names come before keywords, because fewer of them fit."""
    match expected.kind:
        case Kind.RELATION:
            yield from names.kinds.items()
        case Kind.COLUMN:
            yield from columns(names, statement)
        case Kind.EXPRESSION:
            yield from columns(names, statement)
            yield from ((name, "function") for name in names.functions)
        case Kind.TYPE:
            yield from ((name, "type") for name in TYPES)
        case Kind.PROPERTY:
            yield from ((name, "property") for name in COMMON)
        case Kind.QUERY:
            yield from ((name, "query") for name in names.queries)
        case None:
            pass
    yield from ((keyword, "keyword") for keyword in sorted(expected.keywords))


def columns(names: CompletionNames, statement: str) -> Iterator[Choice]:
    """The columns of the relations that the statement mentions, or of all relations if it mentions none."""
    words = set(re.findall(r"[\w@]+|`[^`]*`", statement))
    upper = {word.upper() for word in words}
    named = [name for name in names.columns if name in words or name in upper] or list(names.columns)
    found: dict[str, str] = {}
    for name in named:
        for column in names.columns[name]:
            found.setdefault(column, f"column of {name}")
    yield from found.items()


def matching(word: str, found: Iterable[Choice]) -> Iterator[Completion]:
    """The choices that begin with the word, in lower case if the word is and if case does not matter."""
    seen = set()
    for text, meta in found:
        if text.upper().startswith(word.upper()) and text not in seen:
            seen.add(text)
            lower = word.islower() and text.isupper()
            yield Completion(text.lower() if lower else text, -len(word), display_meta=meta)


def warm() -> None:
    """Build the parser ahead of the first completion."""
    expected_after("")
