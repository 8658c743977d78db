"""User functions in Python: registered with a Spark session when a job first uses them, run in Spark's Python workers.

An exception in user code does not stop a query: the row's result is NULL, and the reason is reported. A batch that
fails is retried in halves, so that only the faulty rows are NULL.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from holdfast.runtime.expressions.physical import arrow_type, spark_type
from holdfast.runtime.functions.user import UserFunction, by_digest

NAMED = re.compile(r"\buser_(?:(?P<part>[a-z]+)_)?(?P<digest>[0-9a-f]{12})\b")
MAX_PROBLEMS = 1_000
"""Problems retained until the next call of `UserFunctions.problems`."""

Problems = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FunctionProblem:
    """The number of rows for which a user function failed, by reason."""

    function: str
    reason: str
    rows: int


class UserFunctions:
    """The user functions of one engine's sessions."""

    def __init__(self) -> None:
        self._registered: dict[int, set[str]] = {}
        self._problems: Accumulator[Problems] | None = None
        self._lock = Lock()

    def register(self, session: SparkSession, texts: Iterable[str]) -> None:
        """Register the functions that SQL texts use with a session."""
        for text in texts:
            for found in NAMED.finditer(text) if "user_" in text else ():
                self._register(session, found.group(), found["part"] or "", found["digest"])

    def problems(self) -> list[FunctionProblem]:
        """The problems since the last call."""
        with self._lock:
            if self._problems is None or not self._problems.value:
                return []
            found, self._problems.value = self._problems.value, []
        counts: dict[tuple[str, str], int] = {}
        for problem in found:
            counts[problem] = counts.get(problem, 0) + 1
        return [FunctionProblem(function, reason, rows) for (function, reason), rows in counts.items()]

    def _register(self, session: SparkSession, name: str, part: str, digest: str) -> None:
        with self._lock:
            done = self._registered.setdefault(id(session), set())
            function = None if name in done else by_digest(digest)
            if function is None:
                return
            if self._problems is None:
                self._problems = session.sparkContext.accumulator([], _problem_accumulator())
            session.udf.register(name, _udf(function, part, self._problems))
            done.add(name)


def _problem_accumulator() -> AccumulatorParam[Problems]:
    """Its class is local, so that it is pickled by value and workers do not import this package."""
    limit = MAX_PROBLEMS

    class ProblemAccumulator(AccumulatorParam[Problems]):
        def zero(self, value: Problems) -> Problems:
            return value[:0]

        def addInPlace(self, value1: Problems, value2: Problems) -> Problems:  # noqa: N802
            return [*value1, *value2][:limit]

    return ProblemAccumulator()


def _udf(function: UserFunction, part: str, problems: "Accumulator[Problems]") -> Any:
    code = {
        "": _scalar,
        "partial": _partial,
        "merge": _merge,
        "result": _result,
    }[part]
    returns = "STRING" if part in ("partial", "merge") else spark_type(function.returns)
    type_ = pa.string() if part in ("partial", "merge") else arrow_type(function.returns)
    evaluate = code(function.name, function.source, type_, problems, len(function.parameters))
    with warnings.catch_warnings():
        # Spark warns about missing type hints, which a function of any number of columns cannot have.
        warnings.simplefilter("ignore")
        return arrow_udf(evaluate, returns, ArrowUDFType.SCALAR)


Evaluate = Callable[..., pa.Array]


def _loader(name: str, source: str) -> Callable[[], Any]:
    """Loads the user's function or class. Its code is run once per worker, even if it fails."""
    loaded: list[Any] = []
    failures: list[BaseException] = []

    def load() -> Any:
        if failures:
            raise failures[0].with_traceback(None)
        if not loaded:
            try:
                namespace: dict[str, Any] = {"__name__": f"function_{name.lower()}"}
                exec(compile(source, f"<function {name}>", "exec"), namespace)
                loaded.append(next(v for k, v in reversed(list(namespace.items())) if k.upper() == name.upper()))
            except (Exception, SystemExit) as failure:
                failures.append(failure)
                raise
        return loaded[0]

    return load


def _evaluator(
    name: str, problems: "Accumulator[Problems]", type_: pa.DataType, load: Callable[[], Any], compute: Evaluate
) -> Evaluate:
    """Calls `compute` with the loaded code and a batch of columns; if it raises, with halves of the batch.

    A single row for which it raises is NULL. If the code does not load or does not return a column, all rows are NULL:
    halves would fail in the same way.
    """
    limit = MAX_PROBLEMS

    class NotAColumn(Exception):
        """The result does not have one value per row."""

    def as_column(result: Any, count: int) -> pa.Array:
        if isinstance(result, str | bytes | dict) or not hasattr(result, "__iter__"):
            raise NotAColumn(f"TypeError: returned a {type(result).__name__}, not a column")
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        elif not isinstance(result, pa.Array):
            result = pa.array(result) if hasattr(result, "dtype") else list(result)
        if len(result) != count:
            raise NotAColumn(f"ValueError: returned {len(result)} values for {count} rows")
        if isinstance(result, pa.Array):
            return result.cast(type_)
        # With an integer type, Arrow would truncate fractions.
        fractions = pa.types.is_integer(type_) and any(isinstance(value, float) for value in result)
        return pa.array(result).cast(type_) if fractions else pa.array(result, type_)

    def failed_rows(reason: str, count: int) -> pa.Array:
        problems.add([(name, reason[:500])] * min(count, limit))
        return pa.nulls(count, type_)

    def computed(function: Any, columns: tuple[pa.Array, ...]) -> pa.Array:
        count = len(columns[0])
        if count == 0:
            return pa.array([], type_)
        try:
            return as_column(compute(function, *columns), count)
        except NotAColumn:
            raise
        except (Exception, SystemExit) as error:
            if count == 1:
                return failed_rows(f"{type(error).__name__}: {error}", 1)
        middle = count // 2
        halves = ((0, middle), (middle, count - middle))
        return pa.concat_arrays([computed(function, tuple(c.slice(a, b) for c in columns)) for a, b in halves])

    def evaluate(*columns: pa.Array) -> pa.Array:
        try:
            return computed(load(), columns)
        except NotAColumn as error:
            return failed_rows(str(error), len(columns[0]))
        except (Exception, SystemExit) as error:
            return failed_rows(f"{type(error).__name__}: {error}", len(columns[0]))

    return evaluate


def _scalar(name: str, source: str, type_: pa.DataType, problems: "Accumulator[Problems]", _count: int) -> Evaluate:
    return _evaluator(name, problems, type_, _loader(name, source), lambda function, *columns: function(*columns))


def _partial(name: str, source: str, type_: pa.DataType, problems: "Accumulator[Problems]", count: int) -> Evaluate:
    """The state of each group's rows, in the order of their records."""
    import json

    import pyarrow.compute as pc

    def states(aggregate_class: Any, groups: pa.Array) -> pa.Array:
        aggregate, found = aggregate_class(), []
        for group in range(len(groups)):
            rows = groups.slice(group, 1).flatten()
            part, off = rows.field("p"), rows.field("o")
            by = [*(part.flatten() if pa.types.is_struct(part.type) else [part]), off]
            order = pa.table(by, names=[str(i) for i in range(len(by))])
            rows = rows.take(pc.sort_indices(order, sort_keys=[(name, "ascending") for name in order.column_names]))
            arguments = [rows.field(f"a{i}") for i in range(count)]
            found.append(json.dumps(aggregate.partial(*arguments)))
        return pa.array(found, pa.string())

    return _evaluator(name, problems, type_, _loader(name, source), states)


def _merge(name: str, source: str, type_: pa.DataType, problems: "Accumulator[Problems]", _count: int) -> Evaluate:
    """The state merged with the partial; if the merge fails, the unchanged state."""
    import json

    load = _loader(name, source)

    def merged(before: str | None, partial: str | None) -> str | None:
        if before is None or partial is None:
            return partial if before is None else before
        try:
            return json.dumps(load()().merge(json.loads(before), json.loads(partial)))
        except (Exception, SystemExit) as error:
            problems.add([(name, f"{type(error).__name__}: {error}"[:500])])
            return before

    def states(before: pa.Array, partials: pa.Array) -> pa.Array:
        pairs = zip(before.to_pylist(), partials.to_pylist(), strict=True)
        return pa.array([merged(*pair) for pair in pairs], type_)

    return states


def _result(name: str, source: str, type_: pa.DataType, problems: "Accumulator[Problems]", _count: int) -> Evaluate:
    import json

    def results(aggregate_class: Any, states: pa.Array) -> list[Any]:
        aggregate = aggregate_class()
        return [None if s is None else aggregate.result(json.loads(s)) for s in states.to_pylist()]

    return _evaluator(name, problems, type_, _loader(name, source), results)
