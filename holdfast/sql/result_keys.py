"""Under which names a result has the parts of its key."""

from collections.abc import Sequence

from holdfast.errors import BindError, Position
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Expression
from holdfast.runtime.functions.registry import functions
from holdfast.sql.bound_query import BoundColumn


def key_names(
    projection: Sequence[BoundColumn],
    wanted: Sequence[Expression],
    *,
    what: str,
    position: Position | None,
    choices: Sequence[Expression] = (),
    shown: Sequence[Expression] = (),
) -> tuple[str, ...]:
    """The names of the columns that are the parts of the key; each must be selected once.

    `what` is what an error calls a part; `choices` are columns of which any one would do as the only part, and `shown`
    are the parts as the user would write them.
    """
    written = list(map(format_expression, shown or wanted))
    names = []
    for index, expression in enumerate(wanted):
        found = [column for column in projection if column.expression == expression]
        text = written[index]
        if not found:
            every = format_expression(choices[0]) if choices else ", ".join(written)
            others = " or ".join(map(format_expression, choices)) or text
            raise BindError(
                f"the {what} {others} is missing from the select list",
                detail="The key of the result is made of it.",
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
    """Refuse a result that is nothing but its key."""
    if len(keys) == len(projection):
        raise BindError(
            "the result has no value columns",
            detail=f"Only the key is selected: {', '.join(keys)}.",
            hint=copy_hint(keys[0], f"{keys[0]}_1") if keys else None,
            position=position,
        )


def copy_hint(key: str, name: str) -> str | None:
    return f"Copy it into the value with AS_VALUE({key}) AS {name}." if "AS_VALUE" in functions() else None
