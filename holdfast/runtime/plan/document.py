"""A plan: what one statement does to the catalog, and the query that it starts."""

from dataclasses import dataclass
from typing import ClassVar

from holdfast.names import ObjectName, QueryId
from holdfast.runtime.plan.ddl import DdlCommand
from holdfast.runtime.plan.optional import ABSENT, Absent, Maybe
from holdfast.runtime.plan.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A query: what it reads and writes, and its steps. The query of a CREATE SOURCE TABLE has no sink."""

    sources: tuple[ObjectName, ...]
    sink: Maybe[ObjectName] = ABSENT
    physical_plan: Step
    query_id: QueryId
    runtime_id: Maybe[str] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A stored statement. `statement_text` is for people; execution never parses it."""

    TAG: ClassVar[str] = "ksqlPlanV1"
    statement_text: str
    ddl_command: Maybe[DdlCommand] = ABSENT
    query_plan: Maybe[QueryPlan] = ABSENT

    @property
    def command(self) -> DdlCommand | None:
        """What the statement does to the catalog, if anything."""
        return None if isinstance(self.ddl_command, Absent) else self.ddl_command

    @property
    def query(self) -> QueryPlan | None:
        """The query that the statement starts, if any."""
        return None if isinstance(self.query_plan, Absent) else self.query_plan
