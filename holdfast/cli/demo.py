"""`holdfast demo`: everything once, over HTTP as a user would, in a folder that is gone afterwards."""

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

from holdfast.cli.feed import Feed, Pace
from holdfast.cli.outputs import TableOutput
from holdfast.cli.printing import put, table, told_errors
from holdfast.cli.processes import nothing_left
from holdfast.cli.terminal import Terminal
from holdfast.client import Client, Result, ServerError, Stream
from holdfast.client.shown import is_right
from holdfast.config import Settings, load
from holdfast.names import ServiceId, TopicName
from holdfast.samples.orders import ORDERS

T = TypeVar("T")
Sales = dict[str, tuple[Any, ...]]
"""Rows by region."""

FIRST_ORDERS = 300
ORDERS_A_SECOND = 32.0
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
ASK_ALL = "SELECT region, orders, pieces, revenue FROM sales;"
ASK_ONE = "SELECT region, orders, pieces FROM sales WHERE region = 'north';"


def run(seconds: float) -> None:
    terminal = Terminal()
    console = terminal.out
    logging.basicConfig(level=logging.ERROR)
    with told_errors():
        began = time.monotonic()
        temporary = tempfile.TemporaryDirectory(prefix="holdfast-demo-", ignore_cleanup_errors=True)
        with temporary as folder, nothing_left():
            Demo(terminal, demo_settings(Path(folder))).run(seconds)
        console.print()
        console.print(Text(f"Everything is stopped and removed. That took {time.monotonic() - began:.0f} s.", "bold"))
        console.print(Text("Go on with: holdfast start"))


def demo_settings(folder: Path) -> Settings:
    """The user's settings, but with a broker, a store and ports of the demo's own."""
    flags = {"data_dir": folder, "service_id": "demo", "http_port": 0, "broker_port": 0}
    return replace(load(flags), kafka=None, kafka_properties={}, rebuild=False, service_id=ServiceId("demo"))


class Demo:
    """The steps, each shown with what it does."""

    def __init__(self, terminal: Terminal, settings: Settings) -> None:
        self._console = terminal.out
        self._output = TableOutput(terminal)
        self._settings = settings
        self._step = 0

    def run(self, seconds: float) -> None:
        from holdfast.app import start_service
        from holdfast.server.serve import listen, running

        with ExitStack() as parts:
            self._says("Start", "A Kafka broker, Spark, the store and the HTTP server, all on this machine.")
            taken = parts.enter_context(listen(self._settings))
            service = self._timed("started", lambda: start_service(self._settings, progress=self._detail))
            parts.callback(service.stop)
            server = parts.enter_context(running(service, taken))
            client = parts.enter_context(Client(server.url))
            self._detail(f"HTTP at {server.url}, Kafka at {service.settings.kafka}")

            self._says("Declare a stream", "A topic and the meaning of its records.")
            self._execute(client, CREATE_ORDERS)

            self._says("Load orders", f"{FIRST_ORDERS} records by a Kafka producer, one by INSERT.")
            orders = Feed(service.settings, ORDERS, TopicName("orders"), seed=7)
            parts.callback(orders.close)
            self._timed("sent", lambda: orders.send(FIRST_ORDERS))
            self._execute(client, INSERT_ORDER)

            self._says("Derive", "A stream of some orders and a table of totals; both stay current from now on.")
            self._execute(client, CREATE_LARGE)
            self._execute(client, CREATE_SALES)
            rows = self._timed("caught up with all orders", lambda: self._when_ready(client))
            put(self._console, sales_table(rows), indent=2)

            self._says("Watch", f"Orders keep coming; a push query brings each change, for {seconds:.0f} s.")
            self._statement(WATCH_SALES)
            self._watch(client, server.url, orders, seconds, rows)

            self._says("Ask", "A pull query reads the table as it is now.")
            self._statement(ASK_ONE)
            found = self._timed("answered", lambda: asked(client, ASK_ONE))
            put(self._console, found, indent=2)
            self._execute(client, "SHOW QUERIES;")
            self._says("Stop", "The server, Spark and the broker end; the folder is removed.")

    # ---- showing

    def _says(self, title: str, about: str) -> None:
        self._step += 1
        self._console.print()
        if self._console.is_terminal:
            self._console.print(Rule(Text(f"{self._step}. {title}", "bold cyan"), align="left", style="cyan"))
        else:
            self._console.print(Text(f"== {self._step}. {title}"))
        self._console.print(Text(about))
        self._console.file.flush()

    def _detail(self, told: str) -> None:
        self._console.print(Text(f"  {told}", "dim"))
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
        """The table, once it has caught up with the orders that were there before it."""
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
        """Show the table while changes come in; they are read and the orders sent by two threads beside this one."""
        sales = dict(rows)
        with ExitStack() as parts:
            answer = parts.enter_context(client.stream(WATCH_SALES))
            reading = Beside(lambda: follow(answer, sales))
            parts.callback(reading.finish)
            with Client(server) as other:
                stop = threading.Event()
                sending = Beside(lambda: orders.run(Pace(rate=ORDERS_A_SECOND), stop))
                try:
                    self._show(sales, seconds)
                finally:
                    stop.set()
                    sending.finish()
                    if answer.header.query is not None:
                        other.close_query(answer.header.query)
        self._detail(f"{sum(row[1] for row in sales.values()):,} orders counted")

    def _show(self, sales: Sales, seconds: float) -> None:
        """Show the table for so many seconds from its first change on: the first tick of its kind takes longest."""
        before, patience = dict(sales), time.monotonic() + READY_SECONDS
        while sales == before and time.monotonic() < patience:
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


class Beside:
    """A call in a thread; `finish` waits for it and raises what it raised."""

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


def follow(answer: Stream, sales: Sales) -> None:
    """Keep a copy of the table current."""
    for row in answer:
        if row.tombstone:
            sales.pop(row[0], None)
        else:
            sales[row[0]] = row.values


def sales_of(client: Client) -> Sales:
    return {row[0]: row.values for row in client.query(ASK_ALL)}


def sales_table(sales: Mapping[str, tuple[Any, ...]], before: Mapping[str, tuple[Any, ...]] | None = None) -> Table:
    """The table by region; rows that differ from `before` stand out."""
    made = table(("REGION", "ORDERS", "PIECES", "REVENUE"), [], right=(False, True, True, True))
    for region, (_, count, pieces, revenue) in sorted(sales.items()):
        changed = before is not None and before.get(region) != sales[region]
        cells = (region, f"{count:,}", f"{pieces:,}", f"{revenue:,.2f}")
        made.add_row(*(Text(cell, "bold yellow" if changed else "") for cell in cells))
    return made


def indented(shown: Table) -> Padding:
    return Padding(shown, (0, 0, 0, 2), expand=False)


def asked(client: Client, question: str) -> Table:
    result: Result = client.query(question)
    return table(result.names, [row.values for row in result], right=[is_right(type_) for type_ in result.header.types])
