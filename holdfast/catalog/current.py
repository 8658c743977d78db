"""The catalog of a running server."""

from holdfast.catalog.snapshot import Catalog


class CurrentCatalog:
    """The catalog as of the last command. Replaced on the coordinator's thread, read from any."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __call__(self) -> Catalog:
        return self._catalog

    def replace(self, catalog: Catalog) -> None:
        self._catalog = catalog
