"""What became of commands: `type/name/action` and how it ended."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from holdfast.catalog.snapshot import Catalog
from holdfast.names import QueryId, quote
from holdfast.server.problems import Code, Json, Problem

KEPT = 10_000


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """A command that is done: one that is not has failed, and was never a command."""

    message: str
    query: QueryId | None = None

    @property
    def body(self) -> Json:
        return {"status": "SUCCESS", "message": self.message, "queryId": self.query}


class Statuses:
    """The commands of this process, and the creation of everything that the catalog has. From any thread."""

    def __init__(self) -> None:
        self._done: OrderedDict[str, CommandStatus] = OrderedDict()
        self._lock = Lock()

    def note(self, command: str, message: str, query: QueryId | None = None) -> None:
        with self._lock:
            self._done[command] = CommandStatus(message, query)
            self._done.move_to_end(command)
            while len(self._done) > KEPT:
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
        """A command's status; the name may be quoted or not."""
        every = self.all(catalog)
        for name in (entity, quote(entity), quote(entity.upper())):
            found = every.get(f"{type_.lower()}/{name}/{action.lower()}")
            if found is not None:
                return found
        raise Problem(Code.NOT_FOUND, f'there is no command "{type_}/{entity}/{action}"')
