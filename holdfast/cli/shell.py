"""The interactive form of `holdfast sql`: statements over several lines, each run at its `;`."""

from collections.abc import Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter

from holdfast.cli.split import pieces
from holdfast.cli.sql import Session
from holdfast.client import Client

# fmt: off
WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "LIMIT", "EMIT", "CHANGES", "CREATE", "STREAM",
    "TABLE", "AS", "WITH", "INSERT", "INTO", "VALUES", "DROP", "SHOW", "STREAMS", "TABLES", "QUERIES",
    "TOPICS", "FUNCTIONS", "PROPERTIES", "DESCRIBE", "EXPLAIN", "TERMINATE", "SET", "UNSET", "KAFKA_TOPIC",
    "VALUE_FORMAT", "KEY_FORMAT", "PARTITIONS", "JSON", "PRIMARY", "KEY",
)
# fmt: on
LEAVING = ("exit", "quit", "exit;", "quit;", "\\q")


def shell(session: Session, client: Client) -> None:
    """Read and run until the end of input or `exit`."""
    info = client.info()
    print(f"Holdfast {info['version']} at {client.server}. End statements with ; and leave with exit.")
    prompt: PromptSession[str] = PromptSession(completer=WordCompleter(words(client), ignore_case=True))
    pending = ""
    while True:
        try:
            line = prompt.prompt("holdfast> " if not pending else "      ...> ")
        except KeyboardInterrupt:
            pending = ""
            continue
        except EOFError:
            return
        if not pending and line.strip().lower() in LEAVING:
            return
        pending = f"{pending}\n{line}" if pending else line
        found = list(pieces(pending))
        if not found or found[-1].ended:
            session.run(pending)
            pending = ""


def words(client: Client) -> Sequence[str]:
    """Keywords, and the names that the server knows now."""
    streams, tables = client.execute("SHOW STREAMS; SHOW TABLES;")
    return [*WORDS, *(each["name"] for each in (*streams["streams"], *tables["tables"]))]
