"""All functions by name and release.

To change the result of a function, add a declaration with a later `since`; the earlier one stays for plans that
were written with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from holdfast.errors import Feature, NotYetSupported, Position, TypeMismatch, UnknownFunction
from holdfast.runtime.expressions.tree import Call
from holdfast.runtime.functions import (
    aggregates,
    arrays,
    characters,
    collectors,
    conditionals,
    dates,
    digits,
    durations,
    encodings,
    geo,
    json,
    lambdas,
    maps,
    masks,
    maths,
    regexes,
    split,
    statistics,
    strings,
    table_functions,
    trigonometry,
    urls,
    user,
)
from holdfast.runtime.functions.declaration import (
    AggregateForm,
    AggregateFunction,
    Function,
    Release,
    ScalarForm,
    ScalarFunction,
    TableForm,
    TableFunction,
)
from holdfast.runtime.functions.ksqldb_names import KSQLDB
from holdfast.runtime.functions.parameters import ArgumentType, Chosen, LambdaArgument, TextConstant
from holdfast.types import Decimal, Scalar, SqlType

CURRENT: Release = (0, 1)


class Module(Protocol):
    """A module that declares functions of one category."""

    CATEGORY: str

    @property
    def FUNCTIONS(self) -> Sequence[Function]: ...  # noqa: N802


MODULES: tuple[Module, ...] = (
    strings,
    characters,
    split,
    regexes,
    masks,
    encodings,
    maths,
    digits,
    trigonometry,
    conditionals,
    dates,
    durations,
    arrays,
    maps,
    lambdas,
    json,
    urls,
    geo,
    aggregates,
    collectors,
    statistics,
    table_functions,
)

__all__ = [
    "CURRENT",
    "Release",
    "Resolved",
    "function",
    "functions",
    "is_aggregate",
    "is_table_function",
    "names_over_tables",
    "resolve",
]


@cache
def functions() -> dict[str, tuple[Function, ...]]:
    """Every declaration of every name, oldest first."""
    found: dict[str, tuple[Function, ...]] = {}
    for module in MODULES:
        for declared in module.FUNCTIONS:
            declaration = declared if declared.category else replace(declared, category=module.CATEGORY)
            same = (*found.get(declaration.name, ()), declaration)
            found[declaration.name] = tuple(sorted(same, key=lambda f: f.since))
    return found


def function(name: str, release: Release = CURRENT, *, position: Position | None = None) -> Function:
    """The declaration that a plan of `release` uses."""
    if user.is_versioned(name):
        return user.known(name, position=position).declaration()
    known = functions()
    for declaration in reversed(known.get(name, ())):
        if declaration.since <= release:
            return declaration
    if name in KSQLDB:
        raise NotYetSupported(Feature.FUNCTION, name, position=position)
    raise UnknownFunction(name, known=sorted(known), position=position)


def is_aggregate(name: str, release: Release = CURRENT) -> bool:
    """Whether a name is an aggregate function; false for an undeclared name."""
    if user.is_versioned(name):
        return user.known(name).aggregate
    return any(isinstance(f, AggregateFunction) and f.since <= release for f in functions().get(name, ()))


def names_over_tables(release: Release = CURRENT) -> list[str]:
    """The aggregates that are supported over tables."""
    declared = (function(name, release) for name in sorted(functions()) if is_aggregate(name, release))
    return [f.name for f in declared if isinstance(f, AggregateFunction) and any(form.undoing for form in f.forms)]


def is_table_function(name: str, release: Release = CURRENT) -> bool:
    """Whether a name is a table function; false for an undeclared name."""
    return any(isinstance(f, TableFunction) and f.since <= release for f in functions().get(name, ()))


@dataclass(frozen=True, slots=True)
class Resolved:
    """The form that a call resolves to, with the types its arguments are cast to."""

    function: Function
    form: ScalarForm | AggregateForm | TableForm
    types: tuple[Chosen, ...]
    returns: SqlType


def resolve(call: Call, arguments: Sequence[ArgumentType], release: Release = CURRENT) -> Resolved:
    """Choose the first form that accepts the arguments unchanged, or else the first that accepts them widened."""
    declaration = function(call.name, release, position=call.position)
    forms: Sequence[ScalarForm | AggregateForm | TableForm] = declaration.forms
    if isinstance(declaration, ScalarFunction) and declaration.one_kind:
        _check_kinds(call, arguments)
    for exact in (True, False):
        for form in forms:
            matched = form.match(arguments, exact=exact)
            if matched is not None:
                return Resolved(declaration, form, *matched)
    types = ", ".join(map(_shown, arguments))
    raise TypeMismatch(
        f"function {declaration.name} does not take ({types})",
        hint=f"It takes {' or '.join(str(form) for form in forms)}.",
        position=call.position,
    )


def _check_kinds(call: Call, arguments: Sequence[ArgumentType]) -> None:
    kinds = {type(a) if isinstance(a, Decimal) else a for a in arguments if a is not None}
    mixed = len(kinds) > 1 and Scalar.DOUBLE not in kinds and kinds <= {Scalar.INTEGER, Scalar.BIGINT, Decimal}
    if mixed or (arguments and not kinds):
        raise TypeMismatch(
            f"function {call.name} cannot choose a type for ({', '.join(map(_shown, arguments))})",
            hint="CAST the arguments to one type.",
            position=call.position,
        )


def _shown(argument: ArgumentType) -> str:
    match argument:
        case None:
            return "NULL"
        case TextConstant():
            return str(Scalar.STRING)
        case LambdaArgument(count):
            return f"LAMBDA of {count}"
        case _:
            return str(argument)
