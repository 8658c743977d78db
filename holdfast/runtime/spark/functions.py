"""Users' Python in Spark's sessions: registered when a job first names it, run in Spark's Python workers.

Nothing that a user's code does can stop a query: a row for which it raises is NULL, and the reason is told. A batch
that fails is tried again in halves, so that the rows beside the culprit are computed.
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
KEPT = 1_000
"""Problems that are kept until they are asked for."""

Problems = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FunctionProblem:
    """Rows for which a user's function raised, by the reason that it gave."""

    function: str
    reason: str
    rows: int


class UserFunctions:
    """The users' functions of the sessions of one engine."""

    def __init__(self) -> None:
        self._registered: dict[int, set[str]] = {}
        self._problems: Accumulator[Problems] | None = None
        self._lock = Lock()

    def register(self, session: SparkSession, texts: Iterable[str]) -> None:
        """Make the functions that SQL texts name known to a session."""
        for text in texts:
            for found in NAMED.finditer(text) if "user_" in text else ():
                self._register(session, found.group(), found["part"] or "", found["digest"])

    def problems(self) -> list[FunctionProblem]:
        """What went wrong since this was last asked."""
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
                self._problems = session.sparkContext.accumulator([], _collecting())
            session.udf.register(name, _udf(function, part, self._problems))
            done.add(name)


def _collecting() -> AccumulatorParam[Problems]:
    """A local class is sent to workers whole: they need nothing of this package."""
    most = KEPT

    class Collecting(AccumulatorParam[Problems]):
        def zero(self, value: Problems) -> Problems:
            return value[:0]

        def addInPlace(self, value1: Problems, value2: Problems) -> Problems:  # noqa: N802
            return [*value1, *value2][:most]

    return Collecting()


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
        # Spark would rather see type hints, which code that takes any number of columns cannot have.
        warnings.simplefilter("ignore")
        return arrow_udf(evaluate, returns, ArrowUDFType.SCALAR)


Evaluate = Callable[..., pa.Array]


def _loading(name: str, source: str) -> Callable[[], Any]:
    """The user's function or class. Its code is run once per worker, also when it fails."""
    loaded: list[Any] = []
    failures: list[BaseException] = []

    def load() -> Any:
        if failures:
            raise failures[0].with_traceback(None)
        if not loaded:
            try:
                space: dict[str, Any] = {"__name__": f"function_{name.lower()}"}
                exec(compile(source, f"<function {name}>", "exec"), space)
                loaded.append(next(v for k, v in reversed(list(space.items())) if k.upper() == name.upper()))
            except (Exception, SystemExit) as failure:
                failures.append(failure)
                raise
        return loaded[0]

    return load


def _halving(
    name: str, problems: "Accumulator[Problems]", type_: pa.DataType, load: Callable[[], Any], compute: Evaluate
) -> Evaluate:
    """`compute` of what was loaded and whole columns; of halves of them where it raises, down to the row that is NULL.

    Halves cannot tell what is wrong with code that does not load, or that gives something else than a column: then all
    rows are NULL.
    """
    most = KEPT

    class NoColumn(Exception):
        """The result has not a value for each row."""

    def column(given: Any, count: int) -> pa.Array:
        if isinstance(given, str | bytes | dict) or not hasattr(given, "__iter__"):
            raise NoColumn(f"TypeError: it gave a {type(given).__name__}, not a column")
        if isinstance(given, pa.ChunkedArray):
            given = given.combine_chunks()
        elif not isinstance(given, pa.Array):
            given = pa.array(given) if hasattr(given, "dtype") else list(given)
        if len(given) != count:
            raise NoColumn(f"ValueError: it gave {len(given)} values for {count} rows")
        if isinstance(given, pa.Array):
            return given.cast(type_)
        # Arrow would cut the fractions off.
        fractions = pa.types.is_integer(type_) and any(isinstance(value, float) for value in given)
        return pa.array(given).cast(type_) if fractions else pa.array(given, type_)

    def told(reason: str, count: int) -> pa.Array:
        problems.add([(name, reason[:500])] * min(count, most))
        return pa.nulls(count, type_)

    def computed(function: Any, columns: tuple[pa.Array, ...]) -> pa.Array:
        count = len(columns[0])
        if count == 0:
            return pa.array([], type_)
        try:
            return column(compute(function, *columns), count)
        except NoColumn:
            raise
        except (Exception, SystemExit) as error:
            if count == 1:
                return told(f"{type(error).__name__}: {error}", 1)
        middle = count // 2
        halves = ((0, middle), (middle, count - middle))
        return pa.concat_arrays([computed(function, tuple(c.slice(a, b) for c in columns)) for a, b in halves])

    def evaluate(*columns: pa.Array) -> pa.Array:
        try:
            return computed(load(), columns)
        except NoColumn as error:
            return told(str(error), len(columns[0]))
        except (Exception, SystemExit) as error:
            return told(f"{type(error).__name__}: {error}", len(columns[0]))

    return evaluate


def _scalar(name: str, source: str, type_: pa.DataType, problems: "Accumulator[Problems]", _count: int) -> Evaluate:
    return _halving(name, problems, type_, _loading(name, source), lambda function, *columns: function(*columns))


def _partial(name: str, source: str, type_: pa.DataType, problems: "Accumulator[Problems]", count: int) -> Evaluate:
    """The state of each group's rows, in the order of their records."""
    import json

    import pyarrow.compute as pc

    def states(made: Any, groups: pa.Array) -> pa.Array:
        aggregate, found = made(), []
        for group in range(len(groups)):
            rows = groups.slice(group, 1).flatten()
            part, off = rows.field("p"), rows.field("o")
            by = [*(part.flatten() if pa.types.is_struct(part.type) else [part]), off]
            place = pa.table(by, names=[str(i) for i in range(len(by))])
            rows = rows.take(pc.sort_indices(place, sort_keys=[(name, "ascending") for name in place.column_names]))
            arguments = [rows.field(f"a{i}") for i in range(count)]
            found.append(json.dumps(aggregate.partial(*arguments)))
        return pa.array(found, pa.string())

    return _halving(name, problems, type_, _loading(name, source), states)


def _merge(name: str, source: str, type_: pa.DataType, problems: "Accumulator[Problems]", _count: int) -> Evaluate:
    """The state with what came; where that cannot be, the state stays as it was."""
    import json

    load = _loading(name, source)

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

    def results(made: Any, states: pa.Array) -> list[Any]:
        aggregate = made()
        return [None if s is None else aggregate.result(json.loads(s)) for s in states.to_pylist()]

    return _halving(name, problems, type_, _loading(name, source), results)
