"""The interactive form of `holdfast sql`: statements over several lines, each run at its `;`."""

import threading
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition, completion_is_selected, has_completions
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from rich.text import Text

from holdfast.cli.completion import SqlCompleter, warm
from holdfast.cli.highlight import STYLE, SqlHighlighter
from holdfast.cli.local import is_local
from holdfast.cli.names import KnownNames
from holdfast.cli.split import split_statements
from holdfast.cli.sql import ExitShell, Session
from holdfast.cli.terminal import Terminal
from holdfast.client import Client
from holdfast.config import history_file

PROMPT = "holdfast> "
CONTINUED = "      ... "


def shell(session: Session, client: Client, terminal: Terminal) -> None:
    """Read and run until the end of input or `exit`."""
    info = client.info()
    terminal.out.print(
        Text.assemble(
            (f"Holdfast {info['version']}", "bold"),
            f" at {client.server}. \\? for help, \\q to leave.",
        )
    )
    names = KnownNames(client)
    threading.Thread(target=warm, daemon=True).start()
    prompt = prompt_for(names)
    while True:
        try:
            text = prompt.prompt([("class:prompt", PROMPT)])
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        terminal.note(f"{PROMPT}{text}\n")
        try:
            session.run(text)
        except KeyboardInterrupt:
            terminal.err.print("\nstopped")
        except ExitShell:
            return
        finally:
            names.invalidate()


def prompt_for(names: KnownNames) -> PromptSession[str]:
    return PromptSession(
        history=history(),
        completer=ThreadedCompleter(SqlCompleter(names.get)),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        lexer=SqlHighlighter(),
        style=STYLE,
        key_bindings=keys(),
        multiline=True,
        prompt_continuation=CONTINUED,
        reserve_space_for_menu=6,
        enable_history_search=False,
    )


def keys() -> KeyBindings:
    """Enter runs a complete text and otherwise starts a new line; if a completion is selected, it accepts that."""
    bindings = KeyBindings()

    @bindings.add("enter", filter=~(has_completions & completion_is_selected))
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=True)

    @bindings.add("enter", filter=has_completions & completion_is_selected)
    def accept(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @bindings.add("tab", filter=Condition(at_line_start))
    def indent(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("  ")

    return bindings


def at_line_start() -> bool:
    """Whether the cursor is at the start of a continuation line, where Tab indents."""
    from prompt_toolkit.application import get_app

    document = get_app().current_buffer.document
    return bool(document.text.strip()) and not document.current_line_before_cursor.strip()


def is_complete(text: str) -> bool:
    """Whether Enter should run the text: it is empty, a shell command, or ends with `;`."""
    found = list(split_statements(text))
    return not found or found[-1].ended or (len(found) == 1 and is_local(text))


def history() -> History:
    """The history file, readable by the user only; in memory if it cannot be created."""
    file: Path = history_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
