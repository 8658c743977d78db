"""The words of the project: DESIGN's vocabulary in names and texts of the package, its tests, and the documentation."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "holdfast"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted(PACKAGE.rglob("*.py"))
TEST_MODULES = [
    file
    for folder in ("tests", "bench", "docs")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if file != Path(__file__)
]

FORBIDDEN = {
    "told": "report, emit, notify or show",
    "telling": "translate, report",
    "anew": "again, from scratch",
    "asker": "dependent",
    "askers": "dependents",
    "rider": "live dependent",
    "riders": "live dependents",
    "keeper": "maintaining query",
    "keepers": "maintaining queries",
    "owe": "pending",
    "owed": "pending",
    "owes": "pending",
    "owing": "pending",
    "fates": "outcomes",
    "meetings": "matches",
    "piece": "backfill slice, statement, part",
    "tell": "emit, report",
    "tells": "reports",
    "remembered": "looked up, stored",
    "recalled": "looked up",
}
PHRASES = {
    r"so (?:many|few)\b": "a number or a name",
    r"so long\b(?! as)": "a duration",
    r"stands? still": "freeze",
    r"le(?:ave|ft|aves)[ _]behind": "freeze",
    r"class \w*Meaning": "definition",
    r"no place for": "skip",
    r"made anew": "rebuilt, recreated",
}
IDENTIFIERS = {"given": "the name of what it is: columns, rows, found", "kept": "retained, held, stored"}
"""Words of plain English that say nothing as a name."""
WORD = re.compile(rf"(?<![a-z])({'|'.join(FORBIDDEN)})(?![a-z])", re.IGNORECASE)
PHRASE = re.compile(rf"(?<![a-z])(?:{'|'.join(PHRASES)})", re.IGNORECASE)
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")

GERUNDS = {"nothing", "serving", "testing", "publishing", "framing"}
"""Nouns of the field that end like a gerund."""
ENDINGS = ("ings", "ing", "ers", "er", "ed", "es", "s", "e")
SHORTEST_STEM = 3
ALIKE = {
    ("holdfast", ("server", "serving")),
    ("holdfast/runtime/spark", ("build", "builders")),
}
"""Pairs that are left: the server and the reads behind it, `build` and the folder of its parts."""


@pytest.mark.parametrize("file", [*MODULES, *TEST_MODULES, *PAGES], ids=lambda file: str(file.relative_to(ROOT)))
def test_no_text_uses_a_word_outside_the_vocabulary(file: Path) -> None:
    """Names are split into their words, so `told_errors` and `RowKeeper` are found too.

    A line that ends with `# stored name` has a name that files on disk contain.
    """
    found = [
        f"{number}: {line.strip()}"
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if not line.endswith("# stored name") and (WORD.search(CAPITAL.sub(" ", line)) or PHRASE.search(line))
    ]
    assert found == []


def test_the_check_finds_words_phrases_and_parts_of_names() -> None:
    for text in ("it is told so", "told_errors()", "class RowKeeper:", "rows are Owed"):
        assert WORD.search(CAPITAL.sub(" ", text))
    assert PHRASE.search("after so many records")
    assert PHRASE.search("def _leave_behind(self)")
    assert PHRASE.search("class ColumnMeaning:")
    assert not WORD.search(CAPITAL.sub(" ", "the bookkeeper strider, allowed and flowed"))


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_identifiers_say_what_they_name(file: Path) -> None:
    found = {name for name in identifiers(file.read_text("utf-8")) if IDENTIFIERS.keys() & words(name)}
    assert found == set()


def identifiers(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(asname=str(name)) | ast.keyword(arg=str(name)):
                yield name


def words(name: str) -> set[str]:
    return set(CAPITAL.sub("_", name).lower().split("_"))


def test_identifiers_are_split_into_words() -> None:
    found = set(identifiers("def f(given_rows): self.rowsKept = KEPT; g(kept=1)\nclass Given: ...\nimport a as kept_a"))
    assert {name for name in found if IDENTIFIERS.keys() & words(name)} == {
        "given_rows", "rowsKept", "KEPT", "kept", "Given", "kept_a",
    }  # fmt: skip


def test_modules_are_named_by_nouns() -> None:
    """A module of tests is named after the module that it tests."""
    files = [file for file in (*MODULES, *TEST_MODULES) if not file.stem.startswith("test_")]
    named = {file.parent.name if file.stem == "__init__" else file.stem for file in files}
    assert {name for name in named if name.endswith("ing")} <= GERUNDS


def test_no_two_modules_of_a_folder_differ_only_by_an_ending() -> None:
    alike: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for file in MODULES:
        named = file.parent if file.stem == "__init__" else file
        alike[named.parent.relative_to(ROOT), stem(named.stem)].append(named.stem)
    found = {(str(folder), tuple(names)) for (folder, _), names in alike.items() if len(names) > 1}
    assert found == ALIKE


def stem(name: str) -> str:
    endings = (end for end in ENDINGS if name.endswith(end) and len(name) >= SHORTEST_STEM + len(end))
    return name.removesuffix(next(endings, ""))


def test_names_with_the_same_stem_are_found() -> None:
    for names in (("followed", "follower"), ("push", "pushes", "pushing"), ("time", "times"), ("close", "closing")):
        assert len(set(map(stem, names))) == 1
    assert stem("subscribe") != stem("subscriptions")


def test_a_class_name_is_defined_once_in_its_part() -> None:
    """A name may be used again only where the import says which part is meant, as with a client's `Row`."""
    defined: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file in MODULES:
        module = str(file.relative_to(PACKAGE).with_suffix("")).replace("/", ".")
        part = next((part for part in PARTS if module == part or module.startswith(f"{part}.")), "engine")
        for name in public_classes(file):
            defined[part, name].append(module)
    assert {name: modules for (_, name), modules in defined.items() if len(modules) > 1} == {}


PARTS = ("client", "testing", "sql.syntax", "runtime.store.memory")
"""What has names of its own: the client, query tests, statements as written, and the model of the store."""


def public_classes(file: Path) -> Iterator[str]:
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
