"""Running statements: one row, Arrow or tuples; prepared statements; deadlines.

A prepared statement over Arrow tables is planned once and scans whatever its sources hold when it runs. Planning is
most of the cost of a statement over a few rows: a merge of 20 rows took 3.5 ms when it was planned each time, and takes
0.4 ms.
"""

import logging
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from threading import Condition, Lock, Thread, current_thread
from typing import Any, Protocol, TypeVar, cast

import duckdb
import pyarrow as pa

from holdfast.errors import ReadError, ResultTooLarge

log = logging.getLogger(__name__)


def one(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The only row of a statement that always has one."""
    [row] = connection.execute(sql).fetchall()
    return tuple(row)


BATCH_ROWS = 131_072
T_co = TypeVar("T_co", covariant=True)


class Fetch(Protocol[T_co]):
    """Runs a statement and has its rows."""

    def __call__(self, connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object]) -> T_co: ...


def as_arrow(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
    """As a relation runs its statement, without the relation.

    `execute` would read the finished rows back through another statement, and a relation plans its own twice: half of
    what a prepared merge of 20 rows costs.
    """
    result = cast("Any", connection)._submit(sql, list(parameters) or None, "arrow", BATCH_ROWS)
    return cast("pa.Table", result.arrow_table())


def as_tuples(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    return list(connection.execute(sql, list(parameters) or None).fetchall())


def as_bounded_arrow(max_bytes: int) -> Fetch[pa.Table]:
    """As `as_arrow`, for results that are refused when they are larger."""

    def fetch(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
        result = cast("Any", connection)._submit(sql, list(parameters) or None, "stream", BATCH_ROWS)
        with result.arrow_reader() as reader, _stream_errors():
            batches: list[pa.RecordBatch] = []
            size = 0
            for batch in reader:
                size += batch.nbytes
                if size > max_bytes:
                    raise ResultTooLarge(max_bytes)
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)

    return fetch


@contextmanager
def _stream_errors() -> Iterator[None]:
    """Raise DuckDB's errors as its own: those of a stream come through Arrow."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        text = str(error)
        kinds = {"INTERRUPT": duckdb.InterruptException, "Out of Memory": duckdb.OutOfMemoryException}
        kind = next((kind for sign, kind in kinds.items() if text.startswith(sign)), duckdb.Error)
        raise kind(text) from error


class Deadlines:
    """Every deadline is the same number of seconds after its start, so the oldest expires first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._watch = _Watch()
        # A store that is never closed must not leave a thread at exit: its frames keep DuckDB's objects alive.
        self._end = weakref.finalize(self, self._watch.close)

    @contextmanager
    def over(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Call `interrupt` when the block takes too long."""
        token = self._watch.add(time.monotonic() + self.seconds, interrupt)
        try:
            yield
        finally:
            self._watch.remove(token)

    def close(self) -> None:
        self._end()


class _Watch:
    """The thread and the deadlines it waits for. Starts with the first one."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: dict[int, tuple[float, Callable[[], None]]] = {}
        self._tokens = count()
        self._thread: Thread | None = None
        self._closed = False

    def add(self, deadline: float, interrupt: Callable[[], None]) -> int:
        with self._changed:
            token = next(self._tokens)
            self._waiting[token] = (deadline, interrupt)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="read deadlines", daemon=True)
                self._thread.start()
            elif len(self._waiting) == 1:
                self._changed.notify()
        return token

    def remove(self, token: int) -> None:
        with self._changed:
            self._waiting.pop(token, None)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                due = [token for token, (deadline, _) in self._waiting.items() if deadline <= now]
                for token in due:
                    _, interrupt = self._waiting.pop(token)
                    try:
                        interrupt()
                    except Exception:  # The limits of all other reads depend on this thread.
                        log.exception("read could not be interrupted")
                first = next(iter(self._waiting.values()), None)
                self._changed.wait(None if first is None else first[0] - now)


STATEMENTS = 500
"""Kept at most; the one that was not used for the longest time goes first."""


class Source:
    """An Arrow table that can be exchanged under the statements that scan it."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._empty = self.table = schema.empty_table()

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def empty(self) -> None:
        self.table = self._empty


_KNOWN: set[str] = set()
"""Texts that are one SELECT: those with parameters come again, and parsing one is a quarter of a read by key."""


def check_select(connection: duckdb.DuckDBPyConnection, sql: str, *, again: bool = False) -> None:
    """Refuse what is not one SELECT; `again` says that the text will come again."""
    if sql in _KNOWN:
        return
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ReadError("only one SELECT can be evaluated")
    if again:
        if len(_KNOWN) >= STATEMENTS:
            _KNOWN.clear()
        _KNOWN.add(sql)


class Prepared:
    """One statement on a connection of its own, which it closes."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str, schemas: Mapping[str, pa.Schema]) -> None:
        self._connection = connection
        self._sources = {name: Source(schema) for name, schema in schemas.items()}
        try:
            for name, source in self._sources.items():
                connection.register(name, source)
            check_select(connection, sql)
            connection.execute(f"PREPARE statement AS {sql}")
        except BaseException:
            self.close()
            raise

    def interrupt(self) -> None:
        self._connection.interrupt()

    def run(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        for name, source in self._sources.items():
            source.table = tables[name]
        try:
            return as_arrow(self._connection, "EXECUTE statement")
        finally:
            for source in self._sources.values():
                source.empty()

    def close(self) -> None:
        for name in self._sources:
            self._connection.unregister(name)
        self._connection.close()


Signature = tuple[str, tuple[tuple[str, pa.Schema], ...]]


class PreparedStatements:
    """The prepared statements of a database, found by their text and the schemas they scan. For any thread."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database
        self._lock = Lock()
        self._idle: OrderedDict[Signature, list[Prepared]] = OrderedDict()

    def run(self, sql: str, tables: Mapping[str, pa.Table], deadlines: Deadlines | None = None) -> pa.Table:
        signature = (sql, tuple((name, table.schema) for name, table in tables.items()))
        prepared = self._take(signature) or Prepared(self._database.cursor(), sql, dict(signature[1]))
        try:
            with nullcontext() if deadlines is None else deadlines.over(prepared.interrupt):
                return prepared.run(tables)
        finally:
            self._give_back(signature, prepared)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, OrderedDict()
        _close(idle)

    def _take(self, signature: Signature) -> Prepared | None:
        with self._lock:
            idle = self._idle.get(signature)
            return idle.pop() if idle else None

    def _give_back(self, signature: Signature, prepared: Prepared) -> None:
        gone: dict[Signature, list[Prepared]] = {}
        with self._lock:
            self._idle.setdefault(signature, []).append(prepared)
            self._idle.move_to_end(signature)
            if len(self._idle) > STATEMENTS:
                gone.update([self._idle.popitem(last=False)])
        _close(gone)


def _close(idle: Mapping[Signature, list[Prepared]]) -> None:
    for statements in idle.values():
        for prepared in statements:
            prepared.close()
