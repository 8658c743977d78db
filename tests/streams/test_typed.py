"""The types of topologies, as mypy infers them."""

import sys
from pathlib import Path

from mypy import api

ROOT = Path(__file__).parents[2]


def test_mypy_knows_the_types_of_keys_values_and_windows() -> None:
    """The file asserts types, and its `type: ignore` comments would be unused if a wrong call were accepted."""
    limit = sys.getrecursionlimit()
    try:
        output, errors, status = api.run(
            ["--config-file", str(ROOT / "pyproject.toml"), str(Path(__file__).with_name("typed.py"))]
        )
    finally:
        # mypy raises it for the whole process, in which statements could then be nested more deeply.
        sys.setrecursionlimit(limit)
    assert (status, errors) == (0, ""), output
