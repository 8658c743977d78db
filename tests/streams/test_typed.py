"""The types of topologies, as mypy infers them."""

from pathlib import Path

from mypy import api

ROOT = Path(__file__).parents[2]


def test_mypy_knows_the_types_of_keys_values_and_windows() -> None:
    """The file asserts types, and its `type: ignore` comments would be unused if a wrong call were accepted."""
    output, errors, status = api.run(
        ["--config-file", str(ROOT / "pyproject.toml"), str(Path(__file__).with_name("typed.py"))]
    )
    assert (status, errors) == (0, ""), output
