"""`holdfast demo`: everything once, over HTTP as a user would, in a folder that is gone afterwards."""

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from holdfast.cli.entities import print_entity
from holdfast.cli.orders import Orders
from holdfast.cli.printing import aligned_right, output, table, told_errors
from holdfast.client.client import Client, ServerError
from holdfast.config import Settings, load
from holdfast.errors import HoldfastError
from holdfast.names import ServiceId

FIRST_ORDERS = 300
ORDERS_A_TURN = 8
TURN_SECONDS = 0.25
FRAMES_A_SECOND = 8
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
ASK_ONE = "SELECT region, orders, revenue FROM sales WHERE region = 'north';"


def run(seconds: float) -> None:
    console = output()
    with told_errors():
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="holdfast-demo-", ignore_cleanup_errors=True) as folder:
            with nothing_left():
                Demo(console, demo_settings(Path(folder))).run(seconds)
        console.print()
        console.print(Text(f"Everything is stopped and removed. That took {time.monotonic() - began:.0f} s.", "bold"))
        console.print(Text("Go on with: holdfast start"))


def demo_settings(folder: Path) -> Settings:
    """The user's settings, but with a broker, a store and ports of the demo's own."""
    flags = {"data_dir": folder, "service_id": "demo", "http_port": 0, "broker_port": 0}
    return replace(load(flags), kafka=None, kafka_properties={}, rebuild=False, service_id=ServiceId("demo"))


@contextmanager
def nothing_left() -> Iterator[None]:
    """End the processes that were started in the block and are still there after it."""
    own = psutil.Process()
    before = {child.pid for child in own.children(recursive=True)}
    try:
        yield
    finally:
        started = [child for child in own.children(recursive=True) if child.pid not in before]
        _, left = psutil.wait_procs(started, timeout=END_SECONDS)
        for process in left:
            process.terminate()
        for process in psutil.wait_procs(left, timeout=END_SECONDS)[1]:
            process.kill()


class Demo:
    """The steps, each shown with what it does."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console = console
        self._settings = settings
        self._step = 0

    def run(self, seconds: float) -> None:
        from holdfast.app import start_service
        from holdfast.server.serve import listen, running

        with ExitStack() as parts:
            self._says("Start", "A Kafka broker, Spark, the store and the HTTP server, all on this machine.")
            taken = parts.enter_context(listen(self._settings))
            service = self._timed(lambda: start_service(self._settings, progress=self._detail))
            parts.callback(service.stop)
            server = parts.enter_context(running(service, taken))
            client = parts.enter_context(Client(server.url))
            self._detail(f"HTTP at {server.url}, Kafka at {service.settings.kafka}")

            self._says("Declare a stream", "A topic and the meaning of its records.")
            self._execute(client, CREATE_ORDERS)

            self._says("Load orders", f"{FIRST_ORDERS} records by a Kafka producer, one by INSERT.")
            orders = Orders(service.settings, random.Random(7))
            parts.callback(orders.close)
            self._timed(lambda: orders.send(FIRST_ORDERS))
            self._execute(client, INSERT_ORDER)

            self._says("Derive", "A stream of some orders and a table of totals; both stay current from now on.")
            self._execute(client, CREATE_LARGE)
            self._execute(client, CREATE_SALES)
            rows = self._timed(lambda: self._when_ready(client))
            self._console.print(Padding(sales_table(rows), (0, 0, 0, 2)))

            self._says("Watch", f"Orders keep coming; a push query brings each change, for {seconds:.0f} s.")
            self._statement(WATCH_SALES)
            self._watch(client, server.url, orders, seconds, rows)

            self._says("Ask", "A pull query reads the table as it is now.")
            self._statement(ASK_ONE)
            self._console.print(Padding(self._timed(lambda: asked(client, ASK_ONE)), (0, 0, 0, 2)))
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
        self._console.print(Padding(Text(text, "green"), (0, 0, 0, 2)))

    def _execute(self, client: Client, text: str) -> None:
        self._statement(text)
        for entity in client.execute(text):
            print_entity(self._console, entity)

    def _timed[T](self, call: Callable[[], T]) -> T:
        began = time.monotonic()
        done = call()
        took = time.monotonic() - began
        self._detail(f"took {took * 1000:.0f} ms" if took < 1 else f"took {took:.1f} s")
        return done
