"""Names known to the server, for completion; cached until a statement may have changed them."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.client import Client
from holdfast.client.entities import Entities
from holdfast.errors import HoldfastError
from holdfast.names import show

SHOW_NAMES = (
    "SHOW STREAMS EXTENDED; SHOW TABLES EXTENDED; SHOW MATERIALIZED VIEWS EXTENDED; SHOW QUERIES; SHOW FUNCTIONS;"
)


@dataclass(frozen=True, slots=True)
class CompletionNames:
    """Columns by relation, both as a user would write them, and the other names."""

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    queries: Sequence[str] = ()
    functions: Sequence[str] = ()


class KnownNames:
    """The names of one server. Thread-safe."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._stale = True
        self._known = CompletionNames()

    def invalidate(self) -> None:
        """Have the names loaded again, because they may have changed."""
        self._stale = True

    def get(self) -> CompletionNames:
        with self._lock:
            if self._stale:
                try:
                    self._known, self._stale = names_of(self._client.execute(SHOW_NAMES)), False
                except HoldfastError:
                    return self._known  # completion never fails
            return self._known


def names_of(entities: Entities) -> CompletionNames:
    streams, tables, views, queries, functions = entities
    described = [each for some in (streams, tables, views) for each in some["sourceDescriptions"]]
    return CompletionNames(
        columns={show(each["name"]): [show(field["name"]) for field in each["fields"]] for each in described},
        kinds={show(each["name"]): str(each["type"]).lower() for each in described},
        queries=[query["id"] for query in queries["queries"]],
        functions=[function["name"] for function in functions["functions"]],
    )
