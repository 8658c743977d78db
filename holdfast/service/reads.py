"""Pull queries, EXPLAIN and transactions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.catalog.objects import QueryEntry
from holdfast.explain.statement import explain_plan, explain_statement
from holdfast.planner.draft import Change
from holdfast.runtime.spark.engine import Engine
from holdfast.service.ddl import Ddl, Done
from holdfast.serving.pull.explain import explain_paths
from holdfast.serving.pull.key_lookup import Key, KeyLookup, KeyRows, key_lookup
from holdfast.serving.pull.paths import ReadStore
from holdfast.serving.pull.query import indexed_read, read
from holdfast.serving.pull.table import pull
from holdfast.serving.results import PullResult
from holdfast.serving.time.choice import explain_choice
from holdfast.serving.time.read_times import Times
from holdfast.serving.transactions import Transactions
from holdfast.sql.bind.statement import BoundExplain
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import ParsedStatement
from holdfast.sql.syntax.statements import ExplainFormat


class Reads:
    """Answers pull queries from the store. Thread-safe."""

    def __init__(self, store: ReadStore, engine: Engine, times: Times, transactions: Transactions, ddl: Ddl) -> None:
        """`engine` runs jobs concurrently with the ticks."""
        self._store, self._engine, self._times = store, engine, times
        self._transactions, self._ddl = transactions, ddl

    def pull(self, bound: BoundSelect | BoundRead, transaction: str | None = None) -> PullResult:
        """Run a pull query; in a transaction, at the transaction's time."""
        if transaction is not None:
            bound = replace(bound, as_of=self._transactions.as_of(transaction, bound.tables, bound.as_of))
        if isinstance(bound, BoundRead):
            return read(bound, self._store, self._engine, self._times)
        return pull(bound, self._store, self._engine, self._times)

    def prepare_lookup(self, bound: BoundSelect) -> KeyLookup | None:
        """A pull query as a lookup by key, if it is one. Does not touch the disk."""
        return key_lookup(bound, self._store)

    def lookup(self, prepared: KeyLookup, keys: Sequence[Key]) -> KeyRows:
        """The rows of some keys, all as of one time."""
        return prepared.read(keys, self._times)

    def explain(self, what: BoundExplain | QueryEntry, format_: ExplainFormat) -> str:
        """The plan of a running query, or of the one that a statement would start."""
        if isinstance(what, QueryEntry):
            return explain_plan(what.plan, format_)
        text, bound = explain_statement(what.statement, what.text, format_), what.statement
        if format_ is ExplainFormat.TEXT and isinstance(bound, BoundSelect | BoundRead):
            return f"{text}{explain_paths(bound, self._store, self._times)}"
        return text

    def explain_timestamp(self, bound: BoundSelect | BoundRead) -> str:
        """The time at which a query would read, and which bound decides it."""
        bound = self._with_indexes(bound)
        choice = self._times.choose(bound.tables, bound.as_of, bound.indexes)
        return explain_choice(choice, self._times.now())

    def dated(self, bound: BoundSelect | BoundRead) -> BoundSelect | BoundRead:
        """A pull query with the `now()` of its AS OF replaced by the current time."""
        return bound if bound.as_of is None else replace(bound, as_of=bound.as_of.dated(self._times.now()))

    def left_ms(self, bound: BoundSelect | BoundRead) -> int:
        """Milliseconds until the time of a pull query is final."""
        bound = self._with_indexes(bound)
        return self._times.left_ms(bound.tables, bound.as_of, bound.indexes)

    def _with_indexes(self, bound: BoundSelect | BoundRead) -> BoundSelect | BoundRead:
        """The query over the indexes of its views, if they can answer it."""
        return indexed_read(bound, self._times) or bound if isinstance(bound, BoundRead) else bound

    def begin_transaction(self, *, read_only: bool = False) -> str:
        """Open a transaction; returns its id."""
        return self._transactions.begin(read_only=read_only)

    def change_in_transaction(self, id_: str, parsed: ParsedStatement, properties: Mapping[str, str]) -> Change:
        """Queue a statement until COMMIT; returns the bound statement."""
        return self._transactions.change(id_, parsed, properties, self._ddl.catalog)

    def fail_transaction(self, id_: str, reason: str) -> None:
        """Fail a transaction that changes the catalog: only ROLLBACK is allowed afterwards."""
        self._transactions.fail(id_, reason)

    def end_transaction(self, id_: str, *, commits: bool) -> list[Done]:
        """End a transaction; returns its changes."""
        draft = self._transactions.end(id_, commits=commits)
        return self._ddl.commit(draft) if draft.statements else []

    def close(self) -> None:
        """End all transactions."""
        self._transactions.close_all()
