"""The pages that are made from the code: statements, functions, errors."""

import inspect
import json
import textwrap
from collections.abc import Iterator
from typing import Any

from holdfast import errors
from holdfast.client import errors as client_errors
from holdfast.errors import HoldfastError, Position, UnknownColumn
from holdfast.runtime.functions.declaration import AggregateFunction
from holdfast.runtime.functions.registry import functions
from holdfast.server.problems import Code, statement_problem
from holdfast.sql.syntax.manual import entry_of
from holdfast.sql.syntax.synopsis import by_rule, synopses


def statements() -> Iterator[str]:
    yield "# Statements\n"
    yield "Made from the grammar. Words in upper case are written as they are, in any case; `[…]` may be left out, of"
    yield "`{… | …}` one is chosen, and `, …` says that more can follow. Statements end with `;`.\n"
    yield 'Unquoted names fold to upper case; `` `name` `` and `"name"` keep theirs.\n'
    for rule, forms in by_rule(synopses()).items():
        entry = entry_of(rule, forms)
        yield f"## {entry.title}\n"
        if entry.about:
            yield f"{entry.about}\n"
        yield "```text"
        yield from (textwrap.fill(form.text, 88, subsequent_indent="    ", break_on_hyphens=False) for form in forms)
        yield "```\n"
        if entry.example:
            yield f"```sql\n{entry.example}\n```\n"


def function_list() -> Iterator[str]:
    latest = {name: versions[-1] for name, versions in sorted(functions().items())}
    yield "# Functions\n"
    yield "Made from their declarations; the examples are run by a test, on both engines.\n"
    for title, chosen in (
        ("Scalar functions", {n: f for n, f in latest.items() if not isinstance(f, AggregateFunction)}),
        ("Aggregates", {n: f for n, f in latest.items() if isinstance(f, AggregateFunction)}),
    ):
        yield f"## {title}\n"
        for name, function in chosen.items():
            yield f"### {name}\n"
            yield "```text"
            yield from dict.fromkeys(f"{name}{form}" for form in function.forms)
            yield "```\n"
            yield f"{function.doc}\n"
            for example in getattr(function, "examples", ()):
                yield f"- `{example.call}` gives `{example.gives}`"
            yield ""


def error_list() -> Iterator[str]:
    yield "# Errors\n"
    yield "Made from the classes in `holdfast.errors`. An error has a short message, often a detail and a hint, a"
    yield "SQLSTATE as in PostgreSQL, and the place in the statement where there is one. Over HTTP:\n"
    yield f"```json\n{json.dumps(example(), indent=1)}\n```\n"
    yield "`entities` are the results of the statements before the one that failed. The Python client raises the class."
    yield ""
    yield "## Of the server\n"
    yield from table(errors.__name__)
    yield "\n## Of the client\n"
    yield from table(client_errors.__name__)
    yield "\n## Error codes\n"
    yield "The first three digits are the HTTP status.\n"
    yield "| code | |\n|---|---|"
    yield from (f"| {code.value} | {code.name.lower().replace('_', ' ')} |" for code in Code)


def example() -> dict[str, Any]:
    error = UnknownColumn("IDD", relation="SALES", known=["ID", "REGION"], position=Position(1, 8, 7))
    return statement_problem(error, "SELECT idd FROM sales", []).body


def table(module: str) -> Iterator[str]:
    yield "| class | SQLSTATE | when |\n|---|---|---|"
    for kind, depth in tree(HoldfastError, 0):
        if kind.__module__ == module:
            indent = "&emsp;" * depth
            yield f"| {indent}`{kind.__name__}` | {kind.sqlstate} | {(inspect.getdoc(kind) or '').splitlines()[0]} |"


def tree(root: type[HoldfastError], depth: int) -> Iterator[tuple[type[HoldfastError], int]]:
    for child in root.__subclasses__():
        yield child, depth
        yield from tree(child, depth + 1)


PAGES = {"statements.md": statements, "functions.md": function_list, "errors.md": error_list}


def page(name: str) -> str:
    return "\n".join(PAGES[name]()) + "\n"
