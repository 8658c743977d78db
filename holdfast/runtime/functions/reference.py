"""The reference page of all functions, generated from their declarations.

`python -m holdfast.runtime.functions.reference > docs/functions.md` updates it.
"""

from collections.abc import Iterator

from holdfast.runtime.functions.declaration import Function, Signature, TableFunction, named
from holdfast.runtime.functions.registry import functions

_HEAD = """# Functions

This page is generated from the declarations of the functions (`holdfast.runtime.functions.reference`), and a test runs
every example. `SHOW FUNCTIONS` lists the functions, `DESCRIBE FUNCTION name` shows one.

A function returns NULL for a row that it cannot compute: one bad row never stops a query. A letter such as `T` stands
for any type, the same one throughout a call; PRIMITIVE is a type that is not an ARRAY, MAP or STRUCT, ORDERED is a type
without MAPs. Positions start at 1. The example of an aggregate lists the values of the column `x` in a group's records.
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
