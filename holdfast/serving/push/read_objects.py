"""The objects that a push query reads: those of its statement, not others that have their names later."""

from collections.abc import Callable, Sequence

from holdfast.catalog.objects import CatalogObject, View
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import is_system
from holdfast.errors import ObjectDropped
from holdfast.names import ObjectName

AGAIN = "Start it again, with a snapshot; what was read before belongs to another object."


class ReadObjects:
    """The objects of one push query. Thread-safe."""

    def __init__(
        self, objects: Sequence[CatalogObject], catalog: Callable[[], Catalog], views: Sequence[View] = ()
    ) -> None:
        """`views` are the plain views through which they are read: an open query does not change with them."""
        self._views = tuple(views)
        self._objects = tuple(each for each in objects if not is_system(each))
        self._catalog = catalog
        self.names: tuple[ObjectName, ...] = tuple(each.name for each in objects)

    @property
    def ids(self) -> str:
        """The ids of the objects, with which a client that resumes names them."""
        return ",".join(map(str, sorted({each.id for each in (*self._objects, *self._views)})))

    def check(self) -> None:
        """Raise if one of them was dropped.

        What was read before a check is theirs: a name gets another object first, and its contents after that.
        """
        catalog = self._catalog()
        for each in self._objects:
            now = catalog.find(each.name)
            if now is None or now.id != each.id:
                raise dropped(each, now)

    def check_resumes(self, ids: str) -> None:
        """Refuse to resume a query that has read objects with other ids."""
        before = set(ids.split(","))
        if before == set(self.ids.split(",")):
            return
        new = next((each for each in (*self._views, *self._objects) if str(each.id) not in before), None)
        what = "the query reads other objects than before" if new is None else _was_recreated(new)
        detail = f"The ids of what was read are {ids}, those of what would be read now are {self.ids}."
        raise ObjectDropped(what, detail=detail, hint=AGAIN)


def dropped(read: CatalogObject, now: CatalogObject | None) -> ObjectDropped:
    """The error of a push query whose object is gone, or has another one in its place."""
    if now is None:
        detail = f"The query has read the object with id {read.id}."
        return ObjectDropped(
            f'{read.KIND} "{read.name}" was dropped', detail=detail, hint="Its changes end with the last ones received."
        )
    detail = f"The query has read the object with id {read.id}; the one of this name has id {now.id}."
    return ObjectDropped(_was_recreated(read), detail=detail, hint=AGAIN)


def _was_recreated(found: CatalogObject | View) -> str:
    return f'{found.KIND} "{found.name}" was dropped and created again'
