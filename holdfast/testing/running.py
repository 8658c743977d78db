"""Runs a case through the whole road: text, plan, bytes, plan, ticks of one record."""

from collections.abc import Iterable, Sequence

from holdfast.errors import Feature, HoldfastError, NotYetSupported
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import Engine
from holdfast.serving.results import PullResult, Push, ResultColumn
from holdfast.sql.parse import statements
from holdfast.testing import afterwards, comparing
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
from holdfast.testing.rows import row_difference, shown_rows
from holdfast.testing.wire import Undecodable

NO_WAIT = 0.0


class Failed(Exception):
    """Something is not as the case expects."""


def run(case: Case | Malformed, engine: Engine) -> Verdict:
    """Run one case in a database of its own, made and thrown away for it."""
    if isinstance(case, Malformed):
        return Verdict(Result.FAILED, f"the test cannot be read: {case.reason}")
    database = Database(engine, case.properties)
    try:
        _Run(case, database).run()
    except NotYetSupported as error:
        return Verdict(Result.UNSUPPORTED, f"{error.missing}: {one_line(error)}", error.missing)
    except (Failed, QueryFailed, Undecodable) as problem:
        return Verdict(Result.FAILED, str(problem))
    except HoldfastError as error:
        return Verdict(Result.FAILED, f"{type(error).__name__}: {one_line(error)}")
    finally:
        database.close()
    return PASSED


class _Run:
    def __init__(self, case: Case, database: Database) -> None:
        self.case, self.database = case, database
        self.pushes: dict[str, Push] = {}

    def run(self) -> None:
        case = self.case
        if case.expected_error is not None:
            self._expect_refusal(case.expected_error)
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
            told = afterwards.difference(case.post, database.catalog, database.wires, case.partitions)
            if told is not None:
                raise Failed(told)

    # -- statements ----------------------------------------------------------------------------------

    def _execute(self, text: str) -> PullResult | Push | None:
        answer = None
        for parsed in statements(text, lambda: self.database.catalog.types):
            answer = self.database.execute(parsed)
        return answer

    def _expect_refusal(self, expected: ExpectedError) -> None:
        """The last statement must fail, or when all run, a record after them; those before must not."""
        *first, last = self.case.statements
        for text in first:
            self._execute(text)
        try:
            self._execute(last)
            self._feed(self.case.inputs)
        except NotYetSupported:
            raise
        except HoldfastError as error:
            told = mismatch(expected, error)
            if told is not None:
                raise Failed(told) from None
            return
        raise Failed(f"an error was expected, but all statements ran: {expected.message or expected.type}")

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
            raise Failed(f"no stream or table has topic {topic}, so it is not known how to write its records")
        if self.database.writes(topic):
            raise NotYetSupported(
                Feature.TOPIC,
                "of a query with records of others",
                f"the records that others write to {topic}, which a query writes, are not read",
            )
        self.database.feed(topic, [wire.write(record) for record in records])

    def _check_outputs(self) -> None:
        """All records of each topic that the case names, in their order."""
        self.database.publish()
        topics = list(dict.fromkeys(record.topic for record in self.case.outputs))
        internal = [topic for topic in topics if afterwards.INTERNAL.fullmatch(topic)]
        for topic in (topic for topic in topics if topic not in internal):
            wire = self.database.wires.get(TopicName(topic))
            if wire is None:
                raise Failed(f"no stream or table has topic {topic}")
            expected = [record for record in self.case.outputs if record.topic == topic]
            told = comparing.difference(expected, self.database.produced.get(TopicName(topic), ()), wire)
            if told is not None:
                raise Failed(f"topic {topic}, {told}")
        for topic in internal:
            afterwards.refuse_internal(topic)

    # -- steps ---------------------------------------------------------------------------------------

    def _step(self, step: InputStep | StatementStep | RowsStep) -> None:
        match step:
            case InputStep(records=records, together=together):
                self._feed(records, together=together)
            case StatementStep(error=error) if error is not None:
                self._refused(step, error)
            case StatementStep():
                self._answered(step)
            case RowsStep(query=name, rows=rows):
                self._pushed(name, rows)

    def _refused(self, step: StatementStep, expected: ExpectedError) -> None:
        try:
            self._execute(step.text)
        except HoldfastError as error:
            if isinstance(error, NotYetSupported) and expected.sqlstate != error.sqlstate:
                raise
            told = mismatch(expected, error)
            if told is not None:
                raise Failed(told) from None
            return
        raise Failed(f"an error was expected, but it ran: {step.text}")

    def _answered(self, step: StatementStep) -> None:
        answer = self._execute(step.text)
        match answer:
            case PullResult(columns=columns, rows=rows):
                if step.rows is not None:
                    self._compare(
                        [ExpectedRow(row) for row in step.rows], shown_rows(rows, columns), columns, step.text
                    )
            case None if step.rows is not None or step.name is not None:
                raise Failed(f"only a SELECT gives rows: {step.text}")
            case None:
                pass
            case push:
                if step.name is None:
                    raise Failed(f'a SELECT … EMIT needs a name, "as": {step.text}')
                self.pushes[step.name] = push

    def _pushed(self, name: str, expected: Sequence[ExpectedRow]) -> None:
        push = self.pushes.get(name)
        if push is None:
            raise Failed(f'no SELECT … EMIT before this was named "{name}"')
        self.database.publish()
        found: list[ExpectedRow] = []
        try:
            while (batch := push.next(NO_WAIT)) is not None:
                found += shown_rows(batch.rows, push.columns)
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
        told = row_difference(expected, found, [column.type for column in columns])
        if told is not None:
            raise Failed(f"{what}: {told}")
