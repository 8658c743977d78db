"""User-defined functions in Python.

A definition is identified by its versioned name, `NAME@DIGEST`. The digest covers the whole definition, so a versioned
name always means the same code. Plans contain versioned names; the catalog maps a bare name to a version.
"""

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from holdfast.errors import BindError, Position, UnknownFunction
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.declaration import AggregateForm, AggregateFunction, ScalarForm, ScalarFunction
from holdfast.types import Column, Scalar, SqlType

CATEGORY = "USER"
PYTHON = "PYTHON"
METHODS = {"partial": None, "merge": 2, "result": 1}
"""The methods of an aggregate's class and their numbers of arguments; `partial` takes those of the function."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """The definition in a CREATE FUNCTION; `source` defines a Python function or aggregate class of the same name."""

    name: str
    parameters: tuple[Column, ...]
    returns: SqlType
    source: str
    aggregate: bool = False

    @property
    def digest(self) -> str:
        content = [self.name, [str(c) for c in self.parameters], str(self.returns), self.aggregate, self.source]
        return sha256(json.dumps(content).encode()).hexdigest()[:12].upper()

    @property
    def versioned(self) -> str:
        return f"{self.name}@{self.digest}"

    def spark_name(self, part: str = "") -> str:
        """The name registered with Spark; `part` is the prefix of one method of an aggregate."""
        return f"user_{part}{self.digest.lower()}"

    @property
    def doc(self) -> str:
        """The first line of the Python docstring."""
        found = definition(self.name, ast.parse(self.source))
        text = ast.get_docstring(found) if found is not None else None
        return text.splitlines()[0] if text else "A user-defined function in Python."

    def declaration(self) -> ScalarFunction | AggregateFunction:
        return self._aggregate() if self.aggregate else self._scalar()

    def _scalar(self) -> ScalarFunction:
        form = ScalarForm(
            parameters=tuple(c.type for c in self.parameters),
            returns=self.returns,
            spark=self.spark_name() + "({all})",
            duckdb=None,
        )
        names = tuple(c.name for c in self.parameters)
        return ScalarFunction(name=self.name, doc=self.doc, forms=(form,), arguments=names, category=CATEGORY)

    def _aggregate(self) -> AggregateFunction:
        """The state is JSON text and merged on Spark; the store receives the new state."""
        arguments = ", ".join(f"'a{i}', {{{i}}}" for i in range(len(self.parameters)))
        rows = f"collect_list(named_struct('p', {{part}}, 'o', off, {arguments}))"
        form = AggregateForm(
            parameters=tuple(c.type for c in self.parameters),
            returns=self.returns,
            state=lambda _: (Scalar.STRING,),
            initial=("CAST(NULL AS {t0})",),
            partial=(f"{self.spark_name('partial_')}({rows})",),
            merge=("{p0}",),
            undo=None,
            result_sql={Dialect.SPARK: f"{self.spark_name('result_')}({{s0}})"},
            merged_before=(f"{self.spark_name('merge_')}({{s0}}, {{p0}})",),
        )
        names = tuple(c.name for c in self.parameters)
        return AggregateFunction(name=self.name, doc=self.doc, forms=(form,), arguments=names, category=CATEGORY)


_KNOWN: dict[str, UserFunction] = {}


def declare(function: UserFunction) -> None:
    """Make a function available to plans under its versioned name. Idempotent: a version never changes."""
    _KNOWN[function.versioned] = function


def known(versioned: str, *, position: Position | None = None) -> UserFunction:
    """The definition of a versioned name."""
    found = _KNOWN.get(versioned)
    if found is None:
        raise UnknownFunction(versioned, known=(), position=position)
    return found


def is_versioned(name: str) -> bool:
    return "@" in name


def by_digest(digest: str) -> UserFunction | None:
    return next((f for f in list(_KNOWN.values()) if f.digest == digest.upper()), None)


def check_source(name: str, parameters: Sequence[Column], source: str, position: Position | None) -> bool:
    """Reject source that does not define the function; return whether it is an aggregate. Never runs the code."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = f"Line {error.lineno}: {error.msg}." if isinstance(error, SyntaxError) else f"{error}."
        raise BindError(
            f"the Python source of function {name} cannot be parsed", detail=line, position=position
        ) from None
    found = definition(name, module)
    if found is None:
        raise BindError(
            f"the Python source of function {name} does not define it",
            hint=f"Define a function or an aggregate class named {name.lower()}.",
            position=position,
        )
    if isinstance(found, ast.ClassDef):
        _check_class(name, found, len(parameters), position)
        return True
    _check_arguments(f"function {name}", found.args, len(parameters), position)
    return False


def definition(name: str, module: ast.Module) -> ast.FunctionDef | ast.ClassDef | None:
    """The last function or class of that name, ignoring case."""
    found = [n for n in module.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name.upper() == name.upper()]
    return found[-1] if found else None


def _check_class(name: str, found: ast.ClassDef, count: int, position: Position | None) -> None:
    methods = {node.name: node for node in found.body if isinstance(node, ast.FunctionDef)}
    missing = [method for method in METHODS if method not in methods]
    if missing:
        raise BindError(
            f"the class of aggregate {name} is missing {', '.join(missing)}",
            hint="An aggregate has partial(self, arguments…), merge(self, one, other) and result(self, state).",
            position=position,
        )
    for method, expected in METHODS.items():
        _check_arguments(f"{method} of aggregate {name}", methods[method].args, 1 + (expected or count), position)


def _check_arguments(what: str, arguments: ast.arguments, count: int, position: Position | None) -> None:
    positional = [*arguments.posonlyargs, *arguments.args]
    least = len(positional) - len(arguments.defaults)
    if least <= count <= len(positional) or (arguments.vararg is not None and least <= count):
        return
    raise BindError(
        f"the Python {what} takes {len(positional)} arguments but is called with {count}",
        position=position,
    )
