"""The names of a result's key columns."""

from collections.abc import Sequence

from holdfast.errors import BindError, Position
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Expression
from holdfast.runtime.functions.registry import functions
from holdfast.sql.query.projection import BoundColumn


def key_names(
    projection: Sequence[BoundColumn],
    wanted: Sequence[Expression],
    *,
    what: str,
    position: Position | None,
    choices: Sequence[Expression] = (),
    shown: Sequence[Expression] = (),
) -> tuple[str, ...]:
    """The names of the result's key columns; each must be selected exactly once.

    `what` describes a key column in errors. If there are `choices`, any one of them can be the only key column. `shown`
    are the key columns as the user would write them.
    """
    texts = list(map(format_expression, shown or wanted))
    names = []
    for index, expression in enumerate(wanted):
        found = [column for column in projection if column.expression == expression]
        text = texts[index]
        if not found:
            every = format_expression(choices[0]) if choices else ", ".join(texts)
            others = " or ".join(map(format_expression, choices)) or text
            raise BindError(
                f"the {what} {others} is missing from the select list",
                detail="It is part of the key of the result.",
                hint=f"Write SELECT {every}, …",
                position=position,
            )
        if len(found) > 1:
            aliases = " and ".join(column.name for column in found)
            raise BindError(
                f"the {what} {text} is selected more than once, as {aliases}",
                hint=copy_hint(text, found[1].name),
                position=found[1].expression.position,
            )
        names.append(found[0].name)
    return tuple(names)


def check_values(projection: Sequence[BoundColumn], keys: Sequence[str], position: Position | None) -> None:
    """Refuse a result that has only key columns."""
    if len(keys) == len(projection):
        raise BindError(
            "the result has no value columns",
            detail=f"Only the key is selected: {', '.join(keys)}.",
            hint=copy_hint(keys[0], f"{keys[0]}_1") if keys else None,
            position=position,
        )


def copy_hint(key: str, name: str) -> str | None:
    return f"Copy it into the value with AS_VALUE({key}) AS {name}." if "AS_VALUE" in functions() else None
