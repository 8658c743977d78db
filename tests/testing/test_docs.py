"""The tests on the page about tests pass."""

import re
from pathlib import Path

import pytest

from holdfast.testing.case import PASSED
from holdfast.testing.reader import read_file
from holdfast.testing.runner import run

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_passes(example: str, engine, tmp_path) -> None:
    file = tmp_path / "example.json"
    file.write_text(example)
    cases = read_file(file)
    assert cases
    assert [run(case, engine) for case in cases] == [PASSED] * len(cases)
