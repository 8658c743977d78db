"""Runs a case on a real service: statements or plans, then ticks of one record each."""

from collections.abc import Iterable, Sequence

from holdfast.errors import Feature, HoldfastError, NotYetSupported
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import Engine
from holdfast.serving.push.query import PushQuery
from holdfast.serving.results import PullResult, ResultColumn
from holdfast.sql.syntax.parse import statements
from holdfast.testing import comparison, post_conditions
from holdfast.testing.case import (
    PASSED,
    Case,
    CaseRecord,
    ExpectedError,
    ExpectedRow,
    InputStep,
    Malformed,
    Result,
    RowsStep,
    StatementStep,
    Verdict,
)
from holdfast.testing.database import Database, QueryFailed
from holdfast.testing.refusals import mismatch, one_line
from holdfast.testing.rows import result_rows, row_difference
from holdfast.testing.wire import Undecodable

NO_WAIT = 0.0


class Failed(Exception):
    """An expectation of the case does not hold."""


def run(case: Case | Malformed, engine: Engine) -> Verdict:
    """Run one case in a new database."""
    if isinstance(case, Malformed):
        return Verdict(Result.FAILED, f"the test cannot be parsed: {case.reason}")
    database = Database(engine, case.properties)
    try:
        _CaseRun(case, database).run()
    except NotYetSupported as error:
        return Verdict(Result.UNSUPPORTED, f"{error.missing}: {one_line(error)}", error.missing)
    except (Failed, QueryFailed, Undecodable) as failure:
        return Verdict(Result.FAILED, str(failure))
    except HoldfastError as error:
        return Verdict(Result.FAILED, f"{type(error).__name__}: {one_line(error)}")
    finally:
        database.close()
    return PASSED


class _CaseRun:
    def __init__(self, case: Case, database: Database) -> None:
        self.case, self.database = case, database
        self.pushes: dict[str, PushQuery] = {}

    def run(self) -> None:
        case = self.case
        if case.expected_error is not None:
            self._check_expected_error(case.expected_error)
            return
        for plan in case.plans:
            self.database.run_plan(plan)
        for text in case.statements:
            self._execute(text)
        self._feed(case.inputs)
        for step in case.steps:
            self._step(step)
        self._check_outputs()
        if case.post is not None:
            database = self.database
            problem = post_conditions.difference(case.post, database.catalog, database.wires, case.partitions)
            if problem is not None:
                raise Failed(problem)

    # -- statements ----------------------------------------------------------------------------------

    def _execute(self, text: str) -> PullResult | PushQuery | None:
        result = None
        for parsed in statements(text, lambda: self.database.catalog.types):
            result = self.database.execute(parsed)
        return result

    def _check_expected_error(self, expected: ExpectedError) -> None:
        """The last statement, or a record after it, must fail; earlier statements must succeed."""
        *first, last = self.case.statements
        for text in first:
            self._execute(text)
        try:
            self._execute(last)
            self._feed(self.case.inputs)
        except NotYetSupported:
            raise
        except HoldfastError as error:
            problem = mismatch(expected, error)
            if problem is not None:
                raise Failed(problem) from None
            return
        raise Failed(f"expected an error, but all statements ran: {expected.message or expected.type}")

    # -- records -------------------------------------------------------------------------------------

    def _feed(self, records: Iterable[CaseRecord], *, together: bool = False) -> None:
        if together:
            for topic in dict.fromkeys(record.topic for record in records):
                self._write(TopicName(topic), [record for record in records if record.topic == topic])
            return
        for record in records:
            self._write(TopicName(record.topic), [record])

    def _write(self, topic: TopicName, records: Sequence[CaseRecord]) -> None:
        wire = self.database.wires.get(topic)
        if wire is None:
            raise Failed(f"no stream or table has topic {topic}, so the format of its records is unknown")
        if self.database.writes(topic):
            raise NotYetSupported(
                Feature.TOPIC,
                "of a query with records of others",
                f"the records that others write to {topic}, which a query writes, are not read",
            )
        self.database.feed(topic, [wire.write(record) for record in records])

    def _check_outputs(self) -> None:
        """Compare all records of each topic that the case names, in order."""
        topics = list(dict.fromkeys(record.topic for record in self.case.outputs))
        internal = [topic for topic in topics if post_conditions.INTERNAL.fullmatch(topic)]
        for topic in (topic for topic in topics if topic not in internal):
            wire = self.database.wires.get(TopicName(topic))
            if wire is None:
                raise Failed(f"no stream or table has topic {topic}")
            expected = [record for record in self.case.outputs if record.topic == topic]
            problem = comparison.difference(expected, self.database.produced(TopicName(topic)), wire)
            if problem is not None:
                raise Failed(f"topic {topic}, {problem}")
        for topic in internal:
            post_conditions.refuse_internal(topic)

    # -- steps ---------------------------------------------------------------------------------------

    def _step(self, step: InputStep | StatementStep | RowsStep) -> None:
        match step:
            case InputStep(records=records, together=together):
                self._feed(records, together=together)
            case StatementStep(error=error) if error is not None:
                self._check_error(step, error)
            case StatementStep():
                self._check_result(step)
            case RowsStep(query=name, rows=rows):
                self._check_pushed_rows(name, rows)

    def _check_error(self, step: StatementStep, expected: ExpectedError) -> None:
        try:
            self._execute(step.text)
        except HoldfastError as error:
            if isinstance(error, NotYetSupported) and expected.sqlstate != error.sqlstate:
                raise
            problem = mismatch(expected, error)
            if problem is not None:
                raise Failed(problem) from None
            return
        raise Failed(f"expected an error, but it ran: {step.text}")

    def _check_result(self, step: StatementStep) -> None:
        result = self._execute(step.text)
        match result:
            case PullResult(columns=columns, rows=rows):
                if step.rows is not None:
                    self._compare(
                        [ExpectedRow(row) for row in step.rows], result_rows(rows, columns), columns, step.text
                    )
            case None if step.rows is not None or step.name is not None:
                raise Failed(f"only a SELECT returns rows: {step.text}")
            case None:
                pass
            case push:
                if step.name is None:
                    raise Failed(f'a SELECT … EMIT needs a name, "as": {step.text}')
                self.pushes[step.name] = push

    def _check_pushed_rows(self, name: str, expected: Sequence[ExpectedRow]) -> None:
        push = self.pushes.get(name)
        if push is None:
            raise Failed(f'no earlier SELECT … EMIT is named "{name}"')
        found: list[ExpectedRow] = []
        try:
            while (batch := push.next(NO_WAIT)) is not None:
                found += result_rows(batch.rows, push.columns)
        except StopIteration:
            pass
        self._compare(expected, found, push.columns, name)

    def _compare(
        self,
        expected: Sequence[ExpectedRow],
        found: Sequence[ExpectedRow],
        columns: Sequence[ResultColumn],
        what: str,
    ) -> None:
        problem = row_difference(expected, found, [column.type for column in columns])
        if problem is not None:
            raise Failed(f"{what}: {problem}")
