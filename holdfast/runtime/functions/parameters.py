"""What parameters take, and how the arguments of a call decide their types.

`match` tries the arguments against one list of parameters: fixed types, variables (`T` stands for the same type
wherever it is written), containers of those, lambdas over them, units of time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from holdfast.runtime.expressions.coercion import assignable, common_type
from holdfast.runtime.expressions.comparable import has_map
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, is_number, is_scalar


class Family(Enum):
    """Which types a variable may stand for."""

    ANY = "ANY"
    NUMBER = "NUMBER"
    DECIMAL = "DECIMAL"
    PRIMITIVE = "PRIMITIVE"
    """Every type without parts."""
    ORDERED = "ORDERED"
    """Every type but MAPs and what has them."""

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
    """A type that the arguments decide; with `each`, every argument decides for itself."""

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
        given = ", ".join(map(str, self.parameters))
        return f"{given} => {self.returns}" if len(self.parameters) == 1 else f"({given}) => {self.returns}"


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
    """The types that were chosen for a lambda."""

    parameters: tuple[SqlType, ...]
    returns: SqlType


Chosen = SqlType | LambdaType | Unit


@dataclass(frozen=True, slots=True)
class LambdaGiven:
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
    """A string literal, which may also stand for a moment."""


Given = SqlType | None | LambdaGiven | TextConstant | Unit
"""An argument as it is given; None for NULL."""

_MOMENTS = (Scalar.TIME, Scalar.DATE, Scalar.TIMESTAMP)


@dataclass(slots=True)
class Bindings:
    """What the variables stand for so far; None for one that has only met NULL."""

    exact: bool
    types: dict[str, SqlType | None] = field(default_factory=dict)

    def take(self, parameter: Parameter, given: Given) -> bool:
        """Whether the parameter takes the argument; binds its variables."""
        match parameter:
            case Unit():
                return isinstance(given, Unit)
            case LambdaOf():
                return isinstance(given, LambdaGiven) and self._lambda(parameter, given)
        if isinstance(given, (Unit, LambdaGiven)):
            return False
        if isinstance(given, TextConstant):
            if parameter in _MOMENTS or self._stands_for(parameter) in _MOMENTS:
                return not self.exact or parameter not in _MOMENTS
            given = Scalar.STRING
        match parameter:
            case Variable():
                return self._bind(parameter, given)
            case ArrayOf(element):
                return given is None or (isinstance(given, Array) and self.take(element, given.element))
            case MapOf(key, value):
                return given is None or (
                    isinstance(given, Map) and self.take(key, given.key) and self.take(value, given.value)
                )
            case _:
                return given in (parameter, None) or (not self.exact and assignable(given, parameter))

    def choose(self, parameter: Parameter) -> Chosen | None:
        """The parameter's type now; None when it is still open."""
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

    def _stands_for(self, parameter: Parameter) -> SqlType | None:
        return self.types.get(parameter.name) if isinstance(parameter, Variable) else None

    def _bind(self, variable: Variable, given: SqlType | None) -> bool:
        if given is not None and not variable.family.has(given):
            return False
        merged = common_type(self.types.get(variable.name), given)
        if merged is None and given is not None:
            return False
        self.types[variable.name] = merged
        return True

    def _lambda(self, parameter: LambdaOf, given: LambdaGiven) -> bool:
        types = [self.choose_type(p) for p in parameter.parameters]
        if len(types) != given.count or None in types:
            return False
        returns = given.returns(tuple(t for t in types if t is not None))
        return self.take(parameter.returns, returns)


def match(
    parameters: Sequence[Parameter], arguments: Sequence[Given], *, exact: bool
) -> tuple[Bindings, tuple[Chosen, ...]] | None:
    """The types that the arguments are cast to, or None when the parameters do not take them."""
    bindings = Bindings(exact)
    while True:
        before = dict(bindings.types)
        if not all(bindings.take(p, a) for p, a in zip(parameters, arguments, strict=True)):
            return None
        # A later argument, such as a lambda's result, may widen what an earlier one decided.
        if bindings.types == before:
            break
    chosen = [bindings.choose(parameter) for parameter in parameters]
    return None if None in chosen else (bindings, tuple(c for c in chosen if c is not None))
