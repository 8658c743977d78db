"""Constants in calls that no row could be computed with. Plans that have them run on, and give NULL."""

from holdfast.errors import BindError
from holdfast.runtime.expressions.render import constant_of
from holdfast.runtime.expressions.tree import Call, Expression
from holdfast.runtime.functions.declaration import TableFunction
from holdfast.runtime.functions.registry import functions
from holdfast.sql.walk import walk


def refuse_constants(expression: Expression) -> None:
    """Refuse the calls inside an expression that their constants make useless."""
    for node in walk(expression):
        if isinstance(node, Call):
            _check(node)


def _check(call: Call) -> None:
    found = functions().get(call.name, ())
    if not found or isinstance(found[-1], TableFunction) or found[-1].check is None:
        return
    refusal = found[-1].check([constant_of(argument) for argument in call.arguments])
    if refusal is not None:
        raise BindError(
            f"{call.shown}: {refusal.reason}", hint=refusal.hint, position=call.arguments[refusal.place].position
        )
