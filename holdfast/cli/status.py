"""`holdfast status`: the health of a server and its queries."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.text import Text

from holdfast.cli.console import output, pairs, print_errors, put, put_listing
from holdfast.client import Client
from holdfast.client.entities import state_of

UNHEALTHY = 2
HEALTHY = ("RUNNING", "BUILDING", "PAUSED")
SHOW_STATEMENTS = "SHOW STREAMS; SHOW TABLES; SHOW MATERIALIZED VIEWS; SHOW QUERIES;"


@dataclass(frozen=True, slots=True)
class Query:
    """A query as `holdfast status` shows it."""

    id: str
    state: str
    done: float
    writes: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A summary of a server's state."""

    server: str
    version: str
    service: str
    kafka_cluster: str
    healthy: bool
    problems: Mapping[str, str]
    streams: int
    tables: int
    materialized_views: int
    queries: Sequence[Query]

    @property
    def is_healthy(self) -> bool:
        return self.healthy and all(query.state in HEALTHY for query in self.queries)


def status_of(client: Client) -> ServerStatus:
    info, health = client.info(), client.health()
    streams, tables, views, queries = client.execute(SHOW_STATEMENTS)
    return ServerStatus(
        server=client.server,
        version=info["version"],
        service=info["ksqlServiceId"],
        kafka_cluster=info["kafkaClusterId"],
        healthy=health["isHealthy"],
        problems={
            part: str(detail.get("message", ""))
            for part, detail in health["details"].items()
            if not detail["isHealthy"]
        },
        streams=len(streams["streams"]),
        tables=len(tables["tables"]),
        materialized_views=len(views["materializedViews"]),
        queries=[query_of(query) for query in queries["queries"]],
    )


def query_of(listed: Mapping[str, Any]) -> Query:
    done = listed.get("done")
    return Query(
        id=listed["id"],
        state=listed["state"],
        done=1.0 if done is None else done,
        writes=", ".join(listed["sinks"]),
        reason=listed.get("reason"),
    )


def run(server: str, *, as_json: bool) -> None:
    with print_errors(), Client(server) as client:
        found = status_of(client)
        if as_json:
            typer.echo(orjson.dumps(asdict(found) | {"well": found.is_healthy}, option=orjson.OPT_INDENT_2))
        else:
            show(output(), found)
    if not found.is_healthy:
        raise typer.Exit(UNHEALTHY)


def show(console: Console, found: ServerStatus) -> None:
    states = Counter(query.state for query in found.queries)
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    objects = f"{found.streams} streams, {found.tables} tables, {found.materialized_views} materialized views"
    put(
        console,
        pairs(
            {
                "Server": f"{found.server}, Holdfast {found.version}",
                "Service": found.service,
                "Kafka cluster": found.kafka_cluster,
                "Health": "OK" if found.is_healthy else "unhealthy",
                "Objects": objects,
                "Queries": counted or "none",
            }
        ),
    )
    for part, problem in found.problems.items():
        console.print(Text(f"{part}: {problem}", style="red"))
    if found.queries:
        console.print()
        rows = [[query.id, state_of(asdict(query)), query.writes] for query in found.queries]
        put_listing(console, ("Query", "State", "Writes"), rows)
        for query in found.queries:
            if query.reason:
                console.print(Text(f"{query.id}: {query.reason}", style="red"))
