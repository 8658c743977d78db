"""The documentation names what exists."""

import importlib
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.errors import ReadError
from holdfast.server.http.server import listen, running
from holdfast.serving.printer import Printer
from holdfast.sql.bind.assert_topic import BoundAssertTopic
from holdfast.sql.bind.insert import BoundInsert
from holdfast.sql.bind.statement import BoundExplain, bind
from holdfast.sql.properties.session import KNOWN as PROPERTIES
from holdfast.sql.properties.session import OBJECTS
from holdfast.sql.read.select import BoundSelect, SelectKind
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.manual import MANUAL
from holdfast.sql.syntax.parse import ParsedStatement, statements
from holdfast.sql.syntax.statements import (
    Define,
    Describe,
    DescribeFunction,
    ExplainFormat,
    Print,
    SetProperty,
    Show,
    Undefine,
    UnsetProperty,
)
from holdfast.sql.syntax.variables import Script
from holdfast.types import Scalar

DOCS = Path(__file__).parents[1] / "docs"
TEXTS = [page.read_text() for page in sorted(DOCS.rglob("*.md"))]
NAMES = sorted(
    {n for text in TEXTS for n in re.findall(r"`(holdfast(?:\.\w+)+)`", text)} - {"holdfast.toml", OBJECTS, *PROPERTIES}
)


@pytest.mark.parametrize("name", NAMES)
def test_a_dotted_name_in_the_docs_exists(name: str) -> None:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return
    pytest.fail(f"{name} cannot be imported")


def test_the_pages_that_the_readme_links_to_exist() -> None:
    root = DOCS.parent
    links = re.findall(r"\]\(([^)#]+)\)", (root / "README.md").read_text())
    assert links
    assert [link for link in links if not (root / link).exists() and "benchmarks" not in link] == []


def test_the_files_that_the_contributing_guide_names_exist() -> None:
    root = DOCS.parent
    named = set(re.findall(r"`((?:holdfast|tests|docs)/[\w./]+)`", (root / "CONTRIBUTING.md").read_text()))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (root / name).exists()] == []


def test_a_ddl_statement_is_in_the_files_that_the_contributing_guide_lists() -> None:
    root = DOCS.parent
    guide = (root / "CONTRIBUTING.md").read_text()
    package = (file for file in (root / "holdfast").rglob("*.*") if file.suffix in {".py", ".lark"})
    having = {file for file in package if re.search(r"\b(?:DropType|drop_type)\b", file.read_text("utf-8"))}
    assert having == {file for file in having if f"`{file.relative_to(root)}`" in guide}
    assert len(having) == 8


def test_every_example_of_the_sql_page_runs_in_order(service: Service, settings: Settings) -> None:
    """Pulls wait for what was inserted before them, as a reader of the page would."""
    page = (DOCS / "sql.md").read_text()
    answers: dict[str, list[dict[str, object]]] = {}
    variables: dict[str, str] = {}
    with running(service, listen(replace(settings, http_port=0))) as server:
        client = httpx.Client(base_url=server.url, timeout=90, trust_env=False)
        for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL):
            for parsed in Script(block, variables, lambda: service.catalog.types):
                match parsed.statement:
                    case Define(name, value):
                        variables[name.text] = value
                    case Undefine(name):
                        del variables[name.text]
                    case Show() | Describe() | DescribeFunction() | SetProperty() | UnsetProperty():
                        answers[parsed.text] = [_entity(client, parsed, variables)]
                    case _:
                        answers[parsed.text] = _run(service, parsed)
    assert "pageviews over 400" in service.catalog.object("SLOWER").statement
    by_user = next(rows for text, rows in answers.items() if text.startswith("SELECT * FROM views_per_user"))
    assert by_user == [{"r0": "ann", "r1": 2, "r2": 550, "r3": 430, "r4": 275.0}]
    assert next(rows for text, rows in answers.items() if text.startswith("SELECT id, name")) == [
        {"r0": "ann", "r1": "Ann"}
    ]
    (day,) = next(rows for text, rows in answers.items() if text.startswith("SELECT user, WINDOWSTART"))
    assert (day["r0"], day["r2"] - day["r1"], day["r1"] % 86_400_000) == ("ann", 86_400_000, 0)
    assert service.catalog.find("SENIORS") is None
    _check_looking_around({text: rows[0] for text, rows in answers.items() if rows and "@type" in rows[0]})


def _check_looking_around(shown: dict[str, dict[str, Any]]) -> None:
    """The page's SHOW and DESCRIBE show what the page has created."""
    names = {each["name"] for each in shown["SHOW STREAMS"]["streams"]}
    assert names >= {"PAGEVIEWS", "VISITED_PAGES", "SLOW_VIEWS"}
    assert {each["name"] for each in shown["SHOW STREAMS EXTENDED"]["sourceDescriptions"]} == names
    tables = {each["name"] for each in shown["LIST TABLES"]["tables"]}
    assert tables >= {"USERS", "USER_NAMES", "VIEWS_PER_USER"}
    assert {each["name"] for each in shown["DESCRIBE TABLES"]["sourceDescriptions"]} == tables
    assert "pageviews" in {each["name"] for each in shown["SHOW TOPICS EXTENDED"]["topics"]}
    assert any("command_topic" in each["name"] for each in shown["SHOW ALL TOPICS"]["topics"])
    described = shown["DESCRIBE views_per_user"]["sourceDescription"]
    assert [field["name"] for field in described["fields"]] == ["USER", "VIEWS", "MS", "SLOWEST", "MEAN"]
    assert shown["DESCRIBE FUNCTION substring"]["name"] == "SUBSTRING"
    assert {"name": "LEAST", "value": "400"} in shown["SHOW VARIABLES"]["variables"]
    assert "ADDRESS" in shown["SHOW TYPES"]["types"]
    fields = {field["name"]: field["schema"] for field in shown["DESCRIBE labelled"]["sourceDescription"]["fields"]}
    assert fields["GROSS"]["parameters"] == {"precision": 14, "scale": 4}
    assert [fields[name]["type"] for name in ("PRICES", "TAGS", "LETTERS")] == ["MAP", "ARRAY", "INTEGER"]


def test_every_statement_is_on_a_page() -> None:
    """As an example of SQL, which is also run, or at least by its words."""
    shown = {
        type(parsed.statement)
        for text in TEXTS
        for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        for parsed in statements(re.sub(r"\$\{(\w+)\}", r"\1", block), lambda: {"ADDRESS": Scalar.STRING})
    }
    lacking = [
        entry.title
        for entry in MANUAL.values()
        if not {type(parsed.statement) for parsed in statements(entry.example)} <= shown
        and not any(" ".join(entry.example.split()[:2]) in text for text in TEXTS)
    ]
    assert lacking == []


def _run(service: Service, parsed: ParsedStatement) -> list[dict[str, object]]:
    bound = bind(parsed.statement, service.catalog, {})
    match bound:
        case BoundSelect(kind=SelectKind.PULL):
            return _answer(service, bound)
        case BoundSelect() | BoundSubscribe():
            push = service.push(bound, {"auto.offset.reset": "earliest"})
            batch = push.next(60)
            service.close_push(push.id)
            assert batch is not None
            return batch.rows.to_pylist()
        case BoundInsert():
            service.insert(bound)
        case BoundExplain(format=format_):
            shown = service.explain(bound, format_)
            assert {"TEXT": "Query ", "JSON": '"graph": {', "DOT": "digraph ", "SVG": "<svg "}[format_] in shown
            if format_ is ExplainFormat.SVG:
                assert shown == (DOCS / "explain.svg").read_text(), "the page shows another picture"
        case BoundAssertTopic():
            service.assert_topic(bound)
        case Print():
            printer = Printer(interval=bound.interval, limit=bound.limit)
            with service.print_topic(bound) as tail:
                lines: list[str] = []
                while not printer.done:
                    lines += printer.lines(tail.next(10).to_pylist())
            assert lines[:2] == ["Key format: KAFKA_STRING", "Value format: JSON or KAFKA_STRING"]
            assert len(lines) == 4
        case _:
            service.execute(parsed, {})
    return []


def _entity(client: httpx.Client, parsed: ParsedStatement, variables: Mapping[str, str]) -> dict[str, Any]:
    """The entity with which the server answers a statement."""
    response = client.post("/ksql", json={"ksql": f"{parsed.text};", "sessionVariables": variables})
    assert response.status_code == 200, response.text
    (entity,) = response.json()
    return entity


def _answer(service: Service, bound: BoundSelect) -> list[dict[str, object]]:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        with suppress(ReadError):
            if rows := service.pull(bound).rows.to_pylist():
                return rows
        time.sleep(0.1)
    return []


def test_every_request_of_the_http_page_is_answered_as_it_says(service: Service, settings: Settings) -> None:
    page = (DOCS / "http.md").read_text()
    blocks = re.findall(r"```(http|json)\n(.*?)```", page, re.DOTALL)
    asked = 0
    with running(service, listen(replace(settings, http_port=0))) as server:
        client = httpx.Client(base_url=server.url, timeout=90, trust_env=False)
        for (kind, request), (next_kind, answer) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
            if kind == "json":
                continue
            head, body = request.split("\n", 1)
            method, path = head.split()
            expected = _texts(answer) if next_kind == "json" else None
            assert _answered(client, method, path, body, expected) == expected, request
            asked += 1
    assert asked >= 5


def _answered(client: httpx.Client, method: str, path: str, body: str, expected: list[object] | None) -> object:
    """What the server answers, at the latest once its queries have caught up."""
    deadline = time.monotonic() + 90
    while True:
        response = client.request(method, path, content=body)
        shown = _texts(response.text)
        if shown == expected or time.monotonic() > deadline:
            return shown
        if expected is None:
            assert response.status_code == 200, response.text
            return None
        time.sleep(0.2)


def _texts(text: str) -> list[object]:
    """The JSON texts that stand one after the other."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found
