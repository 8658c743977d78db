"""All functions by name and release.

A declaration that changes what a function gives is added with a later `since`; the earlier one stays for
the plans that were made with it.
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
    collecting,
    conditionals,
    dates,
    durations,
    encodings,
    geo,
    json,
    lambdas,
    maps,
    masks,
    maths,
    regexes,
    rounding,
    rows,
    splitting,
    statistics,
    strings,
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
from holdfast.runtime.functions.later import KSQLDB
from holdfast.runtime.functions.parameters import Chosen, Given, LambdaGiven, TextConstant
from holdfast.types import Decimal, Scalar, SqlType

CURRENT: Release = (0, 1)


class Module(Protocol):
    """A family of functions."""

    CATEGORY: str

    @property
    def FUNCTIONS(self) -> Sequence[Function]: ...  # noqa: N802


MODULES: tuple[Module, ...] = (
    strings,
    characters,
    splitting,
    regexes,
    masks,
    encodings,
    maths,
    rounding,
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
    collecting,
    statistics,
    rows,
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
        for bare in module.FUNCTIONS:
            declaration = bare if bare.category else replace(bare, category=module.CATEGORY)
            same = (*found.get(declaration.name, ()), declaration)
            found[declaration.name] = tuple(sorted(same, key=lambda f: f.since))
    return found


def function(name: str, release: Release = CURRENT, *, position: Position | None = None) -> Function:
    """The declaration that a plan of `release` means."""
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
    """True for the name of an aggregate function; false also for a name that is not declared."""
    if user.is_versioned(name):
        return user.known(name).aggregate
    return any(isinstance(f, AggregateFunction) and f.since <= release for f in functions().get(name, ()))


def names_over_tables(release: Release = CURRENT) -> list[str]:
    """The aggregates that can be kept over a table."""
    declared = (function(name, release) for name in sorted(functions()) if is_aggregate(name, release))
    return [f.name for f in declared if isinstance(f, AggregateFunction) and any(form.undoing for form in f.forms)]


def is_table_function(name: str, release: Release = CURRENT) -> bool:
    """True for the name of a function that makes rows."""
    return any(isinstance(f, TableFunction) and f.since <= release for f in functions().get(name, ()))


@dataclass(frozen=True, slots=True)
class Resolved:
    """The form of a function that a call means, with the types its arguments are cast to."""

    function: Function
    form: ScalarForm | AggregateForm | TableForm
    types: tuple[Chosen, ...]
    returns: SqlType


def resolve(call: Call, arguments: Sequence[Given], release: Release = CURRENT) -> Resolved:
    """Choose the form: one that takes the arguments as they are, else the first that takes them widened."""
    declaration = function(call.name, release, position=call.position)
    forms: Sequence[ScalarForm | AggregateForm | TableForm] = declaration.forms
    if isinstance(declaration, ScalarFunction) and declaration.one_kind:
        _check_kinds(call, arguments)
    for exact in (True, False):
        for form in forms:
            matched = form.match(arguments, exact=exact)
            if matched is not None:
                return Resolved(declaration, form, *matched)
    given = ", ".join(map(_shown, arguments))
    raise TypeMismatch(
        f"function {declaration.name} does not take ({given})",
        hint=f"It takes {' or '.join(str(form) for form in forms)}.",
        position=call.position,
    )


def _check_kinds(call: Call, arguments: Sequence[Given]) -> None:
    kinds = {type(a) if isinstance(a, Decimal) else a for a in arguments if a is not None}
    mixed = len(kinds) > 1 and Scalar.DOUBLE not in kinds and kinds <= {Scalar.INTEGER, Scalar.BIGINT, Decimal}
    if mixed or (arguments and not kinds):
        raise TypeMismatch(
            f"function {call.name} cannot choose a type for ({', '.join(map(_shown, arguments))})",
            hint="CAST the arguments to one type.",
            position=call.position,
        )


def _shown(argument: Given) -> str:
    match argument:
        case None:
            return "NULL"
        case TextConstant():
            return str(Scalar.STRING)
        case LambdaGiven(count):
            return f"LAMBDA of {count}"
        case _:
            return str(argument)
