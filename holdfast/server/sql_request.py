"""A request with SQL, independent of how it arrived."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """A request to run statements or a query; variable names are in upper case."""

    text: str
    properties: Mapping[str, str]
    request_properties: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def options(self) -> Mapping[str, str]:
        """Options of the response; clients that cannot set request properties set them with the others."""
        return {**self.properties, **self.request_properties}
