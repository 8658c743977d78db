"""Statements about holds, after binding."""

from dataclasses import dataclass

from holdfast.catalog.objects import Held, Hold
from holdfast.names import ObjectName
from holdfast.sql.moments import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateHold:
    """A hold to be placed: `at` a time, or at the least that all of its objects can be read at."""

    name: ObjectName
    on: tuple[Held, ...]
    at: Moment | None
    max_lag_ms: int


@dataclass(frozen=True, slots=True)
class BoundAdvanceHold:
    """A hold to be moved `to` a time, or to where nothing would hold its objects."""

    hold: Hold
    to: Moment | None


@dataclass(frozen=True, slots=True)
class BoundRenameHold:
    hold: Hold
    name: ObjectName


@dataclass(frozen=True, slots=True)
class BoundDropHold:
    hold: Hold
