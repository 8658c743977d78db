"""What a tick processes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.program import Program, TopicInput
from holdfast.runtime.spark.engine import ViewInput
from holdfast.runtime.store.port import Time


@dataclass(frozen=True, slots=True)
class TickInputs:
    """Records of topics, and rows of objects whose own query does not emit them in this tick.

    `objects` are rows of streams (`k0.., c0.., ts, part, off`) or deltas of tables. `decoded` says how to read an
    object's rows from its topic instead, during a backfill. `live_dependents` are live queries downstream of a
    backfill: they have processed these inputs before, and only read what the other queries emit in this tick.
    Tables are looked up as of `lookup_as_of`, by default the last time; tables in `absent` have no rows then.
    """

    topics: Mapping[TopicName, ViewInput]
    objects: Mapping[ObjectName, pa.Table] = field(default_factory=dict)
    decoded: Mapping[ObjectName, TopicInput] = field(default_factory=dict)
    live_dependents: frozenset[QueryId] = frozenset()
    lookup_as_of: Time | None = None
    absent: frozenset[ObjectName] = frozenset()


NO_INPUTS = TickInputs({})


@dataclass(frozen=True, slots=True)
class InsertedRows:
    """Rows that a user inserts into a derived object, in addition to those of its query.

    Rows of a stream (`k0.., c0.., ts, part, off`) or of a table (`k0.., c0.., ts, present`).
    """

    program: Program
    rows: pa.Table
