"""The documentation names what exists."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NAMES = sorted({name for page in DOCS.glob("*.md") for name in re.findall(r"`(holdfast(?:\.\w+)+)`", page.read_text()) if not name.endswith(".toml")})


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
