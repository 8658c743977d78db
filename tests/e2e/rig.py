"""A server under load, with every kind of query, and the comparison of all its results with the model."""

import json
import time
from collections.abc import Sequence
from typing import Any

import httpx

from .load import Load
from .model import LATER, QUERIES, Model, check_changelog, check_counts, check_stream, folded
from .server import Refused, Server, wait_for
from .topics import create_topics, read

CATCH_UP_SECONDS = 180.0
DYING_SECONDS = 240.0

CHUNKED = {"transaction_rows": "150"}
"""With this setting, most ticks need several transactions."""
LARGE = {"small_tick_records": "100", "max_records_per_tick": "1000"}
"""With these settings, Spark reads what accumulates while a server is down, in several ticks."""


class Rig:
    """Runs a server through its crashes; `objects` are those that must exist."""

    def __init__(self, server: Server, *, seed: int, number: int = 0, batches_per_second: float = 3.0) -> None:
        """With a `number` other than 0, the load continues in topics that exist."""
        assert server.kafka is not None
        self.server, self.kafka, self.prefix = server, server.kafka, server.service_id
        self.objects = {"EVENTS", "FACTS", "BIG", "CHAINED", "TOTALS", "LOW_TOTALS", "BY_TAG", "GOOD_FACTS"}
        self.starts: list[float] = []
        self.rebuilt: set[str] = set()
        """Tables that may have been rebuilt: their sink topics have tombstones and all rows once more."""
        self.backfilled = False
        """Whether queries may have read records again: the processing log then has their bad records again."""
        topics = (f"{self.prefix}_events", f"{self.prefix}_facts")
        if not number:
            create_topics(self.kafka, *topics)
        self.load = Load(self.kafka, *topics, seed=seed, number=number, batches_per_second=batches_per_second)

    def __enter__(self) -> "Rig":
        return self

    def __exit__(self, *_: object) -> None:
        self.load.halt()

    def begin(self, crash: str | None = None, **settings: str) -> None:
        """The first start: create everything, then start the load."""
        assert self.start(crash, **settings), self.server.log()
        self.declare()

    def declare(self) -> None:
        """Create everything in a running server, then start the load."""
        self.server.sql(QUERIES.format(self.prefix))
        # A bad record is logged once for all running queries, and once more by each query that backfills later.
        wait_for("all queries run", self._all_run, CATCH_UP_SECONDS)
        self.load.start()

    def _all_run(self) -> bool:
        return all(query["state"] == "RUNNING" for query in self.server.queries().values())

    def start(self, crash: str | None = None, *, after: str = "", **settings: str) -> bool:
        """Start with settings for this start only, and meanwhile check what the previous process published.

        Returns whether the server responds: one that is armed, or is being killed, may die first.
        """
        began = time.monotonic()
        self.server.settings = {**CHUNKED, **settings}
        self.server.launch(crash=crash)
        if after:
            self.check_so_far(after)
        answers = self.server.wait_ready()
        if not answers:
            status = self.server.wait_ended(1)
            assert status == -9, f"the server ended with status {status} after {after}:\n{self.server.log()}"
        self.starts.append(time.monotonic() - began)
        return answers

    # -- statements that a crash interrupts ------------------------------------------------------------

    def create(self, name: str) -> bool:
        """Run a CREATE; False if the server died before it responded."""
        try:
            self.server.sql(LATER[name].format(self.prefix))
        except httpx.TimeoutException:
            raise AssertionError(f"CREATE {name} was not answered:\n{self.server.log()}") from None
        except httpx.TransportError:
            return False
        self.objects.add(name)
        return True

    def ensure(self, names: Sequence[str]) -> bool:
        """Create the objects that do not exist; False if the server died meanwhile."""
        try:
            present = self.server.objects()
        except httpx.TransportError:
            return False
        self.objects |= present & set(names)
        return all(self.create(name) for name in names if name not in present)

    def wait_crash(self, point: str) -> None:
        status = self.server.wait_ended(DYING_SECONDS)
        assert status == -9, f"{point}: the server ended with status {status}, not by SIGKILL:\n{self.server.log()}"

    # -- comparing -------------------------------------------------------------------------------------

    def sink(self, name: str) -> str:
        return f"{self.prefix}_{name.lower()}"

    def check_so_far(self, after: str) -> None:
        """Check that everything published so far is correct."""
        found = {name: read(self.kafka, self.sink(name)) for name in self.objects - {"EVENTS", "FACTS", "BY_TAG"}}
        model = Model.of(self.load.written())
        for name, records in sorted(found.items()):
            if name in model.streams:
                check_stream(f"after {after}: {name}", records, model.streams[name], whole=False)
            elif name not in self.rebuilt:
                check_changelog(f"after {after}: {name}", records, model.states[name])

    def finish(self) -> Model:
        """Stop the load, wait until all is processed, and compare everything."""
        self.load.stop()
        model = Model.of(self.load.written())
        self.compare(model)
        return model

    def compare(self, model: Model) -> None:
        """Wait until the server has caught up with the model, and compare everything."""
        try:
            self._compare(model)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.query_states()}\n{self.server.log()}") from None

    def _compare(self, model: Model) -> None:
        assert self.server.objects() >= self.objects
        wait_for("the streams' sinks have all their rows", lambda: self._published(model), CATCH_UP_SECONDS, 1.0)
        tables = sorted(self.objects & model.tables.keys())
        deadline = time.monotonic() + 30
        for name in tables:
            expected = model.tables[name]
            while (got := self.rows(name)) != expected and time.monotonic() < deadline:
                time.sleep(0.5)
            assert got == expected, difference(f"table {name}", got, expected)
        for name in sorted(self.objects & model.streams.keys()):
            check_stream(name, read(self.kafka, self.sink(name)), model.streams[name], whole=True)
        for name in tables:
            if name != "FACTS":
                self._check_sink_of_table(name, model)
        self._check_processing_log(model)

    def _published(self, model: Model) -> bool:
        return all(
            len(read(self.kafka, self.sink(name))) >= len(model.streams[name])
            for name in self.objects & model.streams.keys()
        )

    def _check_sink_of_table(self, name: str, model: Model) -> None:
        expected = model.tables[name]
        deadline = time.monotonic() + 30
        while folded(records := read(self.kafka, self.sink(name))) != expected and time.monotonic() < deadline:
            time.sleep(0.5)
        assert folded(records) == expected, difference(f"topic of {name}", folded(records), expected)
        if name in self.rebuilt:
            return
        if name in model.states:
            check_changelog(name, records, model.states[name])
        else:
            check_counts(name, records)

    def _check_processing_log(self, model: Model) -> None:
        records = read(self.kafka, f"_holdfast_{self.prefix}_processing_log")
        rows = [json.loads(record.value or b"") for record in records]
        logged = sorted((row["TOPIC"], row["PARTITION"], row["OFFSET"]) for row in rows if row["OFFSET"] is not None)
        if self.backfilled:
            logged = sorted(set(logged))
        assert logged == sorted(model.undecodable), "the processing log does not have each bad record once"

    def rows(self, table: str) -> dict[str, Any]:
        """A table as a pull query returns it: by key, the other columns by name."""
        columns = COLUMNS[table]
        try:
            pulled = self.server.pull(f"SELECT {', '.join(columns)} FROM {table};")
        except Refused as refused:
            return {"refused": str(refused)}
        rows = {row[0]: dict(zip(columns[1:], row[1:], strict=True)) for row in pulled}
        assert len(rows) == len(pulled), f"{table} has a key twice: {pulled}"
        return rows

    def query_states(self) -> str:
        try:
            states = {name: (query["state"], query["reason"]) for name, query in self.server.queries().items()}
            return f"queries: {states}"
        except (httpx.HTTPError, Refused) as error:
            return f"queries: {error!r}"


COLUMNS = {
    "FACTS": ("ID", "V", "N"),
    "GOOD_FACTS": ("ID", "V", "N"),
    "EXTRA_FACTS": ("ID", "N"),
    "TOTALS": ("K", "C", "S", "LO", "HI"),
    "LOW_TOTALS": ("K", "S", "C"),
    "EXTRA_TOTALS": ("K", "C", "S"),
    "EXTRA_COUNTS": ("K", "C", "HI"),
    "BY_TAG": ("TAG", "C", "S"),
}


def difference(what: str, got: dict[str, Any], expected: dict[str, Any]) -> str:
    lacking = {key: row for key, row in expected.items() if key not in got}
    surplus = {key: row for key, row in got.items() if key not in expected}
    other = {key: (got[key], row) for key, row in expected.items() if key in got and got[key] != row}
    return f"{what}: lacks {str(lacking)[:600]}, has {str(surplus)[:600]} too many, has (not) {str(other)[:600]}"
