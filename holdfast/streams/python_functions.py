"""Python functions as user-defined functions: their source is sent to the server, and called there with columns."""

import ast
import dis
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import packages_distributions
from types import CodeType, FunctionType, ModuleType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from holdfast.errors import NotSupported, TopologyError
from holdfast.names import literal, quote
from holdfast.runtime.expressions.tree import Call, Expression
from holdfast.runtime.functions.user import METHODS, UserFunction, declare
from holdfast.sql.syntax.walk import rewrite
from holdfast.streams.python_types import sql_type_of
from holdfast.types import Column, SqlType

T = TypeVar("T")

CONSTANTS = (str, int, float, bool, bytes, type(None))
DIGEST = 8
ROW = "_row"
"""The name of the user's function inside a function of columns."""


class Columnar(Generic[T]):
    """The annotation of an argument that receives a whole column as a `pyarrow.Array`, with values of type `T`."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A user-defined function. Its name contains a digest of its source, so that it never changes."""

    definition: UserFunction

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def parameters(self) -> tuple[Column, ...]:
        return self.definition.parameters

    @property
    def statement(self) -> str:
        arguments = ", ".join(f"{quote(column.name)} {column.type}" for column in self.parameters)
        source = literal(f"\n{self.definition.source}\n")
        return (
            f"CREATE FUNCTION IF NOT EXISTS {self.name}({arguments}) RETURNS {self.definition.returns} "
            f"LANGUAGE PYTHON AS {source};"
        )


def versioned(expression: Expression, functions: Iterable[PythonFunction]) -> Expression:
    """The expression with calls of these functions as plans write them, so that its type can be inferred."""
    known = {each.name: each.definition for each in functions}

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Call) or node.name not in known:
            return None
        declare(known[node.name])
        arguments = tuple(rewrite(each, change) for each in node.arguments)
        return replace(node, name=known[node.name].versioned, arguments=arguments)

    return rewrite(expression, change) if known else expression


def row_function(function: Callable[..., Any]) -> PythonFunction:
    """An annotated function of values, or of columns if its annotations are `Columnar`."""
    name = function.__name__
    _refuse_closure(function, name)
    hints = _hints(function, name)
    parameters = [(each, hints.get(each)) for each in _parameters(function)]
    columnar = [get_origin(hint) is Columnar for _, hint in parameters]
    if any(columnar) and not all(columnar):
        raise TopologyError(
            f"function {name} has both columns and values as arguments",
            hint="Annotate all arguments with Columnar, or none.",
        )
    node = _node(function, ast.FunctionDef, name)
    imports = _imports(function)

    def source(own: str) -> str:
        if all(columnar):
            return f"{imports}{_renamed(node, own)}"
        names = ", ".join(each for each, _ in parameters)
        columns = ", ".join(f"{each}.to_pylist()" for each, _ in parameters)
        body = f"def {own}({names}):\n    return [{ROW}(*row) for row in zip({columns})]"
        return f"{imports}{_renamed(node, ROW)}\n\n\n{body}"

    types = tuple(Column(each, _column_type(hint, each, name)) for each, hint in parameters)
    return _function(name, types, _column_type(hints.get("return"), "return", name), source, aggregate=False)


def reduce_function(function: Callable[..., Any]) -> PythonFunction:
    """A function that combines two values of a group into one, as an aggregate."""
    name = function.__name__
    _refuse_closure(function, name)
    hints = _hints(function, name)
    names = _parameters(function)
    if len(names) != 2:
        raise TopologyError(f"function {name} must combine two values into one, but has {len(names)} arguments")
    type_ = _column_type(hints.get("return"), "return", name)
    combine = _renamed(_node(function, ast.FunctionDef, name), ROW)
    imports = _imports(function)

    def source(own: str) -> str:
        return (
            f"{imports}from functools import reduce\n\n\n{combine}\n\n\n"
            f"class {own}:\n"
            "    def partial(self, value):\n"
            "        values = [each for each in value.to_pylist() if each is not None]\n"
            f"        return reduce({ROW}, values) if values else None\n\n"
            "    def merge(self, one, other):\n"
            "        if one is None or other is None:\n"
            "            return other if one is None else one\n"
            f"        return {ROW}(one, other)\n\n"
            "    def result(self, state):\n"
            "        return state"
        )

    return _function(name, (Column("value", type_),), type_, source, aggregate=True)


def aggregate_function(aggregate: type) -> PythonFunction:
    """A class with `partial`, `merge` and `result`, annotated, as an aggregate."""
    name = aggregate.__name__
    methods = {method: getattr(aggregate, method, None) for method in METHODS}
    missing = [method for method, found in methods.items() if not isinstance(found, FunctionType)]
    if missing:
        raise TopologyError(
            f"class {name} is not an aggregate: it has no {', '.join(missing)}",
            hint="An aggregate has partial(self, columns…), merge(self, one, other) and result(self, state).",
        )
    partial, result = (getattr(aggregate, method) for method in ("partial", "result"))
    for method in METHODS:
        _refuse_closure(getattr(aggregate, method), f"{name}.{method}")
    hints = _hints(partial, name)
    types = tuple(Column(each, _column_type(hints.get(each), each, name)) for each in _parameters(partial)[1:])
    node = _node(aggregate, ast.ClassDef, name)
    imports = "".join(dict.fromkeys(_imports(getattr(aggregate, method)) for method in METHODS))
    returns = _column_type(_hints(result, name).get("return"), "return", name)
    return _function(name, types, returns, lambda own: f"{imports}{_renamed(node, own)}", aggregate=True)


def _function(
    name: str, parameters: tuple[Column, ...], returns: SqlType, source: Callable[[str], str], *, aggregate: bool
) -> PythonFunction:
    content = f"{[str(each) for each in parameters]} {returns} {aggregate} {source(ROW)}"
    own = f"{name}_{sha256(content.encode()).hexdigest()[:DIGEST]}".upper()
    return PythonFunction(UserFunction(own, parameters, returns, source(own.lower()), aggregate))


def _parameters(function: Callable[..., Any]) -> list[str]:
    found = inspect.signature(function).parameters.values()
    for each in found:
        if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            raise TopologyError(
                f"function {function.__name__} cannot have the argument {each}",
                hint="Its arguments are columns, one each.",
            )
    return [each.name for each in found]


def _hints(function: Callable[..., Any], name: str) -> Mapping[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise TopologyError(f"an annotation of {name} cannot be evaluated", detail=f"{problem}.") from None


def _column_type(hint: Any, argument: str, function: str) -> SqlType:
    if hint is None:
        what = "result" if argument == "return" else f"argument {argument}"
        raise TopologyError(
            f"the {what} of {function} has no type",
            detail="It becomes a function of SQL, with typed columns.",
            hint=f"Annotate it: def {function}(amount: float) -> float.",
        )
    return sql_type_of(get_args(hint)[0] if get_origin(hint) is Columnar else hint)


# ---- source


def _refuse_closure(function: Any, name: str) -> None:
    names = function.__code__.co_freevars
    if names:
        raise NotSupported(
            f"function {name} cannot be sent to the server",
            detail=f"It uses variables of the function around it: {', '.join(names)}.",
            hint="Pass them as columns, or define them at the top of the module as constants.",
        )


def _node(defined: Any, kind: type[ast.FunctionDef | ast.ClassDef], name: str) -> ast.FunctionDef | ast.ClassDef:
    """The definition in the source file, without decorators and annotations."""
    try:
        found = ast.parse(textwrap.dedent(inspect.getsource(defined))).body[0]
    except (OSError, TypeError, SyntaxError):
        raise NotSupported(
            f"{name} cannot be sent to the server", detail="Its source is not in a file.", hint="Define it in a module."
        ) from None
    if not isinstance(found, kind):
        raise NotSupported(f"{name} cannot be sent to the server", hint="Define it with def, as a plain function.")
    if found.decorator_list:
        raise NotSupported(f"{name} cannot be sent to the server", detail="It has decorators.", hint="Remove them.")
    plain = _Unannotated().visit(found)
    assert isinstance(plain, ast.FunctionDef | ast.ClassDef)
    return plain


class _Unannotated(ast.NodeTransformer):
    """Removes annotations, whose names do not exist where the function runs."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _renamed(node: ast.FunctionDef | ast.ClassDef, name: str) -> str:
    before, node.name = node.name, name
    try:
        return ast.unparse(ast.fix_missing_locations(node))
    finally:
        node.name = before


def _imports(function: Any) -> str:
    """The imports and constants of the module that a function uses."""
    found = function.__globals__
    used = (each for each in dict.fromkeys(_names(function.__code__)) if each in found)
    return "".join(f"{_import(each, found[each], function)}\n" for each in used)


def _names(code: CodeType) -> Iterator[str]:
    yield from (str(each.argval) for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL")
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


@cache
def _installed() -> frozenset[str]:
    """The packages of Python and those that were installed."""
    return frozenset({*sys.stdlib_module_names, *packages_distributions()})


def _import(name: str, value: Any, function: Any) -> str:
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    if isinstance(value, CONSTANTS):
        return f"{name} = {value!r}"
    module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if own.isidentifier() and module != function.__module__ and str(module).partition(".")[0] in _installed():
        return f"from {module} import {own} as {name}"
    raise NotSupported(
        f"function {function.__qualname__} cannot be sent to the server",
        detail=f"It uses {name}, which exists only in this program.",
        hint="Move what it uses into the function, or import it from a package that the server has too.",
    )
