"""The shell's own commands; everything else is sent to the server."""

import re
from dataclasses import dataclass

from holdfast.errors import Position, SyntaxProblem


@dataclass(frozen=True, slots=True)
class Local:
    """A shell command: its syntax, its summary, and the pattern that parses it."""

    name: str
    synopsis: str
    summary: str
    pattern: re.Pattern[str]


def local(name: str, synopsis: str, summary: str, pattern: str) -> Local:
    return Local(name, synopsis, summary, re.compile(pattern, re.IGNORECASE | re.DOTALL))


FILE = r"'(?P<file>(?:[^']|'')+)'"
LOCALS = (
    local(
        "help",
        "HELP [words] or \\?",
        "Show this help, or the statements that begin with the words.",
        r"(?:help|\\\?)(?P<words>.*)",
    ),
    local("run", "RUN SCRIPT 'file'", "Run the statements of a file.", rf"run\s+script\s+{FILE}"),
    local(
        "spool",
        "SPOOL 'file' or SPOOL OFF",
        "Copy the output to a file, until SPOOL OFF.",
        rf"spool\s+(?:{FILE}|off)",
    ),
    local("output", "OUTPUT {TABLE | JSON | CSV}", "Choose the output format.", r"output(?:\s+(?P<format>\w+))?"),
    local("describe", "\\d [name]", "List streams and tables, or describe one.", r"\\d(?:\s+(?P<object>\S+))?"),
    local("clear", "CLEAR", "Clear the screen.", r"clear"),
    local("exit", "EXIT, QUIT, \\q or Ctrl-D", "Leave the shell.", r"exit|quit|\\q"),
)
FIRST_WORDS = frozenset({"HELP", "RUN", "SPOOL", "OUTPUT", "CLEAR", "EXIT", "QUIT", "\\?", "\\D", "\\Q", "\\"})


def read_local(text: str) -> tuple[Local, re.Match[str]] | None:
    """Parse a shell command; None if the text is for the server."""
    words = text.split(None, 1)
    first = words[0].upper().rstrip(";") if words else ""
    if first not in FIRST_WORDS and not first.startswith("\\"):
        return None
    stripped = text.strip().rstrip(";").rstrip()
    for known in LOCALS:
        if (match := known.pattern.fullmatch(stripped)) is not None:
            return known, match
    near = [known.synopsis for known in LOCALS if known.synopsis.upper().startswith(first)]
    hint = f"Write {near[0]}." if near else "\\? lists the commands."
    raise SyntaxProblem(f'"{stripped}" is not a command', hint=hint, position=Position(1, 1, 0))


def is_local(text: str) -> bool:
    """Whether a text is a shell command, which needs no `;`."""
    try:
        return read_local(text) is not None
    except SyntaxProblem:
        return text.lstrip().startswith("\\")


def file_of(match: re.Match[str]) -> str | None:
    named = match.group("file")
    return None if named is None else named.replace("''", "'")
