"""The types of parameters, and how the arguments of a call determine them.

`match` checks the arguments against one list of parameters: fixed types, variables (`T` stands for the same type
wherever it occurs), containers of those, lambdas over them, units of time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from holdfast.runtime.expressions.coercion import assignable, common_type
from holdfast.runtime.expressions.comparable import has_map
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, is_number, is_scalar


class Family(Enum):
    """Which types a variable may have."""

    ANY = "ANY"
    NUMBER = "NUMBER"
    DECIMAL = "DECIMAL"
    PRIMITIVE = "PRIMITIVE"
    """Every type except ARRAY, MAP and STRUCT."""
    ORDERED = "ORDERED"
    """Every type that contains no MAP."""

    def has(self, type_: SqlType) -> bool:
        match self:
            case Family.ANY:
                return True
            case Family.NUMBER:
                return is_number(type_)
            case Family.DECIMAL:
                return isinstance(type_, Decimal)
            case Family.PRIMITIVE:
                return is_scalar(type_)
            case Family.ORDERED:
                return not has_map(type_)


@dataclass(frozen=True, slots=True)
class Variable:
    """A type that the arguments determine; with `each`, every argument determines its own."""

    name: str
    family: Family = Family.ANY
    each: bool = False

    def __str__(self) -> str:
        return self.family.value if self.family is not Family.ANY or self.each else self.name


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: "Parameter"

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    key: "Parameter"
    value: "Parameter"

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class LambdaOf:
    parameters: "tuple[Parameter, ...]"
    returns: "Parameter"

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        return f"{parameters} => {self.returns}" if len(self.parameters) == 1 else f"({parameters}) => {self.returns}"


class Unit(Enum):
    """A bare unit of time, such as DAYS."""

    UNIT = "INTERVALUNIT"

    def __str__(self) -> str:
        return self.value


UNIT = Unit.UNIT
Parameter = SqlType | Variable | ArrayOf | MapOf | LambdaOf | Unit

ANY = Variable("T")
NUMBER = Variable("N", Family.NUMBER)
DECIMAL = Variable("D", Family.DECIMAL)


@dataclass(frozen=True, slots=True)
class LambdaType:
    """The types chosen for a lambda."""

    parameters: tuple[SqlType, ...]
    returns: SqlType


Chosen = SqlType | LambdaType | Unit


@dataclass(frozen=True, slots=True)
class LambdaArgument:
    """A lambda as an argument: its body's type follows from the types of its parameters."""

    count: int
    infer: Callable[[tuple[SqlType, ...]], SqlType | None]
    _found: dict[tuple[SqlType, ...], SqlType | None] = field(default_factory=dict)

    def returns(self, types: tuple[SqlType, ...]) -> SqlType | None:
        if types not in self._found:
            self._found[types] = self.infer(types)
        return self._found[types]


@dataclass(frozen=True, slots=True)
class TextConstant:
    """A string literal, which may also be a TIME, DATE or TIMESTAMP."""


ArgumentType = SqlType | None | LambdaArgument | TextConstant | Unit
"""The type of an argument in a call; None for NULL."""

_TEMPORAL = (Scalar.TIME, Scalar.DATE, Scalar.TIMESTAMP)


@dataclass(slots=True)
class Bindings:
    """The types of the variables so far; None for one that has only matched NULL."""

    exact: bool
    types: dict[str, SqlType | None] = field(default_factory=dict)

    def take(self, parameter: Parameter, argument: ArgumentType) -> bool:
        """Whether the parameter accepts the argument; binds its variables."""
        match parameter:
            case Unit():
                return isinstance(argument, Unit)
            case LambdaOf():
                return isinstance(argument, LambdaArgument) and self._lambda(parameter, argument)
        if isinstance(argument, (Unit, LambdaArgument)):
            return False
        if isinstance(argument, TextConstant):
            if parameter in _TEMPORAL or self._bound_type(parameter) in _TEMPORAL:
                return not self.exact or parameter not in _TEMPORAL
            argument = Scalar.STRING
        match parameter:
            case Variable():
                return self._bind(parameter, argument)
            case ArrayOf(element):
                return argument is None or (isinstance(argument, Array) and self.take(element, argument.element))
            case MapOf(key, value):
                return argument is None or (
                    isinstance(argument, Map) and self.take(key, argument.key) and self.take(value, argument.value)
                )
            case _:
                return argument in (parameter, None) or (not self.exact and assignable(argument, parameter))

    def choose(self, parameter: Parameter) -> Chosen | None:
        """The parameter's type under the current bindings; None while it is undetermined."""
        match parameter:
            case Variable(name):
                return self.types.get(name)
            case ArrayOf(element):
                inner = self.choose_type(element)
                return None if inner is None else Array(inner)
            case MapOf(key, value):
                inner_key, inner_value = self.choose_type(key), self.choose_type(value)
                return None if inner_key is None or inner_value is None else Map(inner_key, inner_value)
            case LambdaOf(parameters, returns):
                types = [self.choose_type(p) for p in parameters]
                result = self.choose_type(returns)
                if result is None or None in types:
                    return None
                return LambdaType(tuple(t for t in types if t is not None), result)
            case _:
                return parameter

    def choose_type(self, parameter: Parameter) -> SqlType | None:
        chosen = self.choose(parameter)
        assert not isinstance(chosen, (LambdaType, Unit))
        return chosen

    def _bound_type(self, parameter: Parameter) -> SqlType | None:
        return self.types.get(parameter.name) if isinstance(parameter, Variable) else None

    def _bind(self, variable: Variable, argument: SqlType | None) -> bool:
        if argument is not None and not variable.family.has(argument):
            return False
        merged = common_type(self.types.get(variable.name), argument)
        if merged is None and argument is not None:
            return False
        self.types[variable.name] = merged
        return True

    def _lambda(self, parameter: LambdaOf, argument: LambdaArgument) -> bool:
        types = [self.choose_type(p) for p in parameter.parameters]
        if len(types) != argument.count or None in types:
            return False
        returns = argument.returns(tuple(t for t in types if t is not None))
        return self.take(parameter.returns, returns)


def match(
    parameters: Sequence[Parameter], arguments: Sequence[ArgumentType], *, exact: bool
) -> tuple[Bindings, tuple[Chosen, ...]] | None:
    """The types that the arguments are cast to, or None if the parameters do not accept them."""
    bindings = Bindings(exact)
    while True:
        before = dict(bindings.types)
        if not all(bindings.take(p, a) for p, a in zip(parameters, arguments, strict=True)):
            return None
        # A later argument, such as a lambda's result, may widen a type that an earlier one determined.
        if bindings.types == before:
            break
    chosen = [bindings.choose(parameter) for parameter in parameters]
    return None if None in chosen else (bindings, tuple(c for c in chosen if c is not None))
