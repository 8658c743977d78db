"""The status of commands, which are named `type/name/action`."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from holdfast.catalog.snapshot import Catalog
from holdfast.names import QueryId, quote
from holdfast.server.problems import Code, Json, Problem

MAX_STATUSES = 10_000


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """A command that succeeded: a statement that fails never becomes a command."""

    message: str
    query: QueryId | None = None

    @property
    def body(self) -> Json:
        return {"status": "SUCCESS", "message": self.message, "queryId": self.query}


class CommandStatuses:
    """The commands of this process, and the creation of every object in the catalog. Thread-safe."""

    def __init__(self) -> None:
        self._done: OrderedDict[str, CommandStatus] = OrderedDict()
        self._lock = Lock()

    def record(self, command: str, message: str, query: QueryId | None = None) -> None:
        with self._lock:
            self._done[command] = CommandStatus(message, query)
            self._done.move_to_end(command)
            while len(self._done) > MAX_STATUSES:
                self._done.popitem(last=False)

    def all(self, catalog: Catalog) -> dict[str, CommandStatus]:
        created = {
            f"{found.KIND.replace(' ', '_')}/{quote(found.name)}/create": CommandStatus(
                f"{found.KIND.capitalize()} {found.name} created.", found.query
            )
            for found in catalog.objects.values()
        }
        with self._lock:
            return {**created, **self._done}

    def one(self, catalog: Catalog, type_: str, entity: str, action: str) -> CommandStatus:
        """A command's status; the name may be quoted."""
        statuses = self.all(catalog)
        for name in (entity, quote(entity), quote(entity.upper())):
            found = statuses.get(f"{type_.lower()}/{name}/{action.lower()}")
            if found is not None:
                return found
        raise Problem(Code.NOT_FOUND, f'command "{type_}/{entity}/{action}" does not exist')
