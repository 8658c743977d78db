"""`holdfast demo`: a complete pipeline over HTTP, in a temporary folder."""

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from holdfast.cli.console import print_errors, put, table
from holdfast.cli.feed import Feed, Pace
from holdfast.cli.outputs import TableOutput
from holdfast.cli.processes import end_started_processes
from holdfast.cli.terminal import Terminal
from holdfast.client import Client, Result, ServerError, Stream
from holdfast.client.display import is_right_aligned
from holdfast.config import Settings, load
from holdfast.names import ServiceId, TopicName
from holdfast.samples.orders import ORDERS

T = TypeVar("T")
Sales = dict[str, tuple[Any, ...]]
"""Rows by region."""

FIRST_ORDERS = 300
ORDERS_PER_SECOND = 32.0
PIPED_SECONDS = 3.0
READY_SECONDS = 60.0
END_SECONDS = 10.0

CREATE_ORDERS = """\
CREATE STREAM orders (id STRING KEY, region STRING, item STRING, quantity INT, amount DOUBLE)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 2);"""
INSERT_ORDER = """\
INSERT INTO orders (id, region, item, quantity, amount) VALUES ('by-hand', 'north', 'anchor', 1, 480.0);"""
CREATE_LARGE = """\
CREATE STREAM large_orders AS
  SELECT id, region, item, amount FROM orders WHERE amount >= 250 EMIT CHANGES;"""
CREATE_SALES = """\
CREATE TABLE sales AS
  SELECT region, COUNT(*) AS orders, SUM(quantity) AS pieces, SUM(amount) AS revenue
  FROM orders GROUP BY region EMIT CHANGES;"""
WATCH_SALES = "SELECT region, orders, pieces, revenue FROM sales EMIT CHANGES;"
SELECT_ALL = "SELECT region, orders, pieces, revenue FROM sales;"
SELECT_ONE = "SELECT region, orders, pieces FROM sales WHERE region = 'north';"


def run(seconds: float) -> None:
    terminal = Terminal()
    console = terminal.out
    logging.basicConfig(level=logging.ERROR)
    with print_errors():
        began = time.monotonic()
        temporary = tempfile.TemporaryDirectory(prefix="holdfast-demo-", ignore_cleanup_errors=True)
        with temporary as folder, end_started_processes():
            Demo(terminal, demo_settings(Path(folder))).run(seconds)
        console.print()
        console.print(Text(f"Everything is stopped and removed. It took {time.monotonic() - began:.0f} s.", "bold"))
        console.print(Text("Next: holdfast start"))


def demo_settings(folder: Path) -> Settings:
    """The user's settings, but with a separate broker, store and ports."""
    flags = {"data_dir": folder, "service_id": "demo", "http_port": 0, "broker_port": 0}
    return replace(load(flags), kafka=None, kafka_properties={}, rebuild=False, service_id=ServiceId("demo"))


class Demo:
    """The steps of the demo, each printed with an explanation."""

    def __init__(self, terminal: Terminal, settings: Settings) -> None:
        self._console = terminal.out
        self._output = TableOutput(terminal)
        self._settings = settings
        self._step = 0

    def run(self, seconds: float) -> None:
        from holdfast.app import start_service
        from holdfast.server.http.server import listen, running

        with ExitStack() as parts:
            self._announce("Start", "A Kafka broker, Spark, the store and the HTTP server, all on this machine.")
            taken = parts.enter_context(listen(self._settings))
            service = self._timed("started", lambda: start_service(self._settings, progress=self._detail))
            parts.callback(service.stop)
            server = parts.enter_context(running(service, taken))
            client = parts.enter_context(Client(server.url))
            self._detail(f"HTTP at {server.url}, Kafka at {service.settings.kafka}")

            self._announce("Declare a stream", "A topic and the columns of its records.")
            self._execute(client, CREATE_ORDERS)

            self._announce("Load orders", f"{FIRST_ORDERS} records by a Kafka producer, one by INSERT.")
            orders = Feed(service.settings, ORDERS, TopicName("orders"), seed=7)
            parts.callback(orders.close)
            self._timed("sent", lambda: orders.send(FIRST_ORDERS))
            self._execute(client, INSERT_ORDER)

            self._announce("Derive", "A stream of large orders and a table of totals; both are kept up to date.")
            self._execute(client, CREATE_LARGE)
            self._execute(client, CREATE_SALES)
            rows = self._timed("caught up with all orders", lambda: self._when_ready(client))
            put(self._console, sales_table(rows), indent=2)

            self._announce("Watch", f"Orders keep coming; a push query streams each change, for {seconds:.0f} s.")
            self._statement(WATCH_SALES)
            self._watch(client, server.url, orders, seconds, rows)

            self._announce("Query", "A pull query reads the current rows of the table.")
            self._statement(SELECT_ONE)
            found = self._timed("answered", lambda: query_result(client, SELECT_ONE))
            put(self._console, found, indent=2)
            self._execute(client, "SHOW QUERIES;")
            self._announce("Stop", "The server, Spark and the broker stop; the folder is removed.")

    # ---- output

    def _announce(self, title: str, about: str) -> None:
        self._step += 1
        self._console.print()
        if self._console.is_terminal:
            self._console.print(Rule(Text(f"{self._step}. {title}", "bold cyan"), align="left", style="cyan"))
        else:
            self._console.print(Text(f"== {self._step}. {title}"))
        self._console.print(Text(about))
        self._console.file.flush()

    def _detail(self, line: str) -> None:
        self._console.print(Text(f"  {line}", "dim"))
        self._console.file.flush()

    def _statement(self, text: str) -> None:
        put(self._console, Text(text, "green"), indent=2)

    def _execute(self, client: Client, text: str) -> None:
        self._statement(text)
        for entity in client.execute(text):
            self._output.entity(entity)

    def _timed(self, doing: str, call: Callable[[], T]) -> T:
        began = time.monotonic()
        done = call()
        took = time.monotonic() - began
        self._detail(f"{doing} in {took * 1000:.0f} ms" if took < 1 else f"{doing} in {took:.1f} s")
        return done

    # ---- the table

    def _when_ready(self, client: Client) -> Sales:
        """The table, once it has caught up with the orders sent before it was created."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                rows = sales_of(client)
            except ServerError:
                if time.monotonic() > deadline:
                    raise
            else:
                if sum(row[1] for row in rows.values()) > FIRST_ORDERS or time.monotonic() > deadline:
                    return rows
            time.sleep(0.1)

    def _watch(self, client: Client, server: str, orders: Feed, seconds: float, rows: Sales) -> None:
        """Show the table as it changes; two other threads read the changes and send the orders."""
        sales = dict(rows)
        with ExitStack() as parts:
            changes = parts.enter_context(client.stream(WATCH_SALES))
            reading = BackgroundCall(lambda: follow(changes, sales))
            parts.callback(reading.finish)
            with Client(server) as other:
                stop = threading.Event()
                sending = BackgroundCall(lambda: orders.run(Pace(rate=ORDERS_PER_SECOND), stop))
                try:
                    self._show(sales, seconds)
                finally:
                    stop.set()
                    sending.finish()
                    if changes.header.query is not None:
                        other.close_query(changes.header.query)
        self._detail(f"{sum(row[1] for row in sales.values()):,} orders counted")

    def _show(self, sales: Sales, seconds: float) -> None:
        """Show the table for `seconds` after its first change; the first tick takes longest."""
        before, latest = dict(sales), time.monotonic() + READY_SECONDS
        while sales == before and time.monotonic() < latest:
            time.sleep(0.05)
        deadline = time.monotonic() + seconds
        if self._console.is_terminal:
            last = dict(sales)
            with Live(indented(sales_table(last)), console=self._console, refresh_per_second=8) as live:
                while time.monotonic() < deadline:
                    time.sleep(0.25)
                    now = dict(sales)
                    live.update(indented(sales_table(now, last)))
                    last = now
            return
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(PIPED_SECONDS, left))
            put(self._console, sales_table(dict(sales)), indent=2)
            self._console.print()


class BackgroundCall:
    """A call in another thread; `finish` waits for it and raises its exception."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        self._thread.join(END_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as failure:
            self._failure = failure


def follow(changes: Stream, sales: Sales) -> None:
    """Keep a copy of the table up to date."""
    for row in changes:
        if row.tombstone:
            sales.pop(row[0], None)
        else:
            sales[row[0]] = row.values


def sales_of(client: Client) -> Sales:
    return {row[0]: row.values for row in client.query(SELECT_ALL)}


def sales_table(sales: Mapping[str, tuple[Any, ...]], before: Mapping[str, tuple[Any, ...]] | None = None) -> Table:
    """The table by region; rows that differ from `before` are highlighted."""
    grid = table(("REGION", "ORDERS", "PIECES", "REVENUE"), [], right=(False, True, True, True))
    for region, (_, count, pieces, revenue) in sorted(sales.items()):
        changed = before is not None and before.get(region) != sales[region]
        cells = (region, f"{count:,}", f"{pieces:,}", f"{revenue:,.2f}")
        grid.add_row(*(Text(cell, "bold yellow" if changed else "") for cell in cells))
    return grid


def indented(grid: Table) -> Padding:
    return Padding(grid, (0, 0, 0, 2), expand=False)


def query_result(client: Client, query: str) -> Table:
    result: Result = client.query(query)
    return table(
        result.names, [row.values for row in result], right=[is_right_aligned(type_) for type_ in result.header.types]
    )
