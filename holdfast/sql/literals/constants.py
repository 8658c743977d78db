"""Constant arguments that make a call always fail. Stored plans with such calls keep running and return NULL."""

from holdfast.errors import BindError
from holdfast.runtime.compiler.sql import constant_of
from holdfast.runtime.expressions.tree import Call, Expression
from holdfast.runtime.functions.declaration import TableFunction
from holdfast.runtime.functions.registry import functions
from holdfast.sql.syntax.walk import walk


def refuse_constants(expression: Expression) -> None:
    """Refuse calls that always fail because of a constant argument."""
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
            f"{call.shown}: {refusal.reason}", hint=refusal.hint, position=call.arguments[refusal.index].position
        )
