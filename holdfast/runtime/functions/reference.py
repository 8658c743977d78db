"""The reference page of all functions, written from their declarations.

`python -m holdfast.runtime.functions.reference > docs/functions.md` writes it anew.
"""

from collections.abc import Iterator

from holdfast.runtime.functions.declaration import Function, Signature, TableFunction, named
from holdfast.runtime.functions.registry import functions

_HEAD = """# Functions

This page is written from the declarations of the functions (`holdfast.runtime.functions.reference`), and a test runs
every example. `SHOW FUNCTIONS` lists them, `DESCRIBE FUNCTION name` shows one.

What a function cannot compute for a row is NULL there: one bad row never stops a query. Letters such as `T` stand for
any type, the same wherever they are written in a call; PRIMITIVE is one without parts, ORDERED one without MAPs.
Positions count from 1. An aggregate's example says which values the column `x` has in the records of a group.
"""


def page() -> str:
    families: dict[str, list[Function]] = {}
    for versions in functions().values():
        families.setdefault(versions[-1].category, []).append(versions[-1])
    parts = [_HEAD]
    for category, members in families.items():
        parts.append(f"\n## {category.title().replace('Json', 'JSON').replace('Url', 'URL')}\n")
        parts += (_entry(function) for function in sorted(members, key=lambda f: f.name))
    return "".join(parts)


def _entry(function: Function) -> str:
    forms = "\n".join(_form(function, form) for form in function.forms)
    shown = "\n".join(_examples(function))
    return f"\n### {function.name}\n\n{function.doc}\n\n```\n{forms}\n```\n" + (f"\n{shown}\n" if shown else "")


def _form(function: Function, form: Signature) -> str:
    arguments = [f"{n} {p}" for n, p in zip(named(function, form), form.parameters, strict=True)]
    if form.variadic:
        arguments.insert(form.repeats % len(arguments) + 1, "...")
    return f"{function.name}({', '.join(arguments)}) -> {form.returns_text}"


def _examples(function: Function) -> Iterator[str]:
    rows = "the rows of " if isinstance(function, TableFunction) else ""
    for example in function.examples:
        over = f" over `x` in {_code(example.over)}" if example.over else ""
        yield f"- {_code(example.call)}{over} gives {rows}{_code(example.gives)}"


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


if __name__ == "__main__":
    print(page(), end="")
