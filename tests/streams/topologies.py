"""What the tests of topologies share: a planned script, and serdes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.catalog.fold import apply
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.planner.commands import commands_for
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.document import Plan
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements
from holdfast.streams import Consumed, Serdes, StreamsBuilder, Topology


@dataclass
class Order:
    customer: str
    amount: float
    city: str


ORDERS = Consumed.with_(Serdes.string(), Serdes.json(Order))
LONGS = Consumed.with_(Serdes.string(), Serdes.long())
USERS = Consumed.with_(Serdes.string(), Serdes.json({"name": str, "level": int}))


def builder() -> StreamsBuilder:
    return StreamsBuilder("shop")


def texts(built: StreamsBuilder | Topology) -> list[str]:
    topology = built.build() if isinstance(built, StreamsBuilder) else built
    return [statement.text for statement in topology.statements]


def last(built: StreamsBuilder) -> str:
    return texts(built)[-1]


def planned(script: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[list[Plan], Catalog]:
    """The plans of statements, each bound over the catalog after those before it; without their texts."""
    catalog, plans = EMPTY, []
    for text, properties in script:
        for parsed in statements(text):
            bound = bind(parsed.statement, catalog, properties)
            for command in commands_for(bound, text="", number=1):
                assert command.plan is not None
                plans.append(replace(decode(command.plan), statement_text=""))
                catalog = apply(catalog, command.written_at(1))
    return plans, catalog


def plans_of(built: StreamsBuilder) -> list[Plan]:
    return planned([(each.text, each.properties) for each in built.build().statements])[0]
