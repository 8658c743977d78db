"""Plans as text in the style of PostgreSQL's EXPLAIN: the inputs of a step are below it, indented."""

from collections.abc import Iterable, Iterator

from holdfast.explain.details import (
    Detail,
    command_details,
    command_title,
    query_details,
    step_details,
    step_title,
)
from holdfast.runtime.plan.document import Plan
from holdfast.runtime.plan.steps import Step, sources_of


def explain(plan: Plan) -> str:
    """The plan as lines of text: its command, then its query as a tree with the sink at the top."""
    lines: list[str] = []
    if plan.command is not None:
        lines += _block(command_title(plan.command), command_details(plan.command))
    if plan.query is not None:
        lines += _block(f"Query {plan.query.query_id}", query_details(plan.query))
        lines += _tree(plan.query.physical_plan, indent="  ")
    return "\n".join(lines)


def _block(title: str, details: Iterable[Detail], indent: str = "") -> Iterator[str]:
    yield title
    for label, text in details:
        if text is not None:
            yield f"{indent}  {label}: {text}"


def _tree(step: Step, indent: str) -> Iterator[str]:
    title = f"{indent}->  {step_title(step)}  ({step.properties.query_context})"
    below = f"{indent}    "
    yield from _block(title, step_details(step), below)
    for source in sources_of(step):
        yield from _tree(source, f"{below}  ")
