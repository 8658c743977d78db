"""HTML tables for notebooks, without colours of their own."""

from collections.abc import Sequence
from html import escape
from typing import Any

from holdfast.client.display import TOMBSTONE, format_value

RIGHT = ' style="text-align: right"'
LEFT = ' style="text-align: left"'


def html_table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    right: Sequence[bool] = (),
    tombstones: Sequence[bool] = (),
    caption: str = "",
) -> str:
    """A table; `tombstones` marks the rows that are tombstones."""
    sides = [RIGHT if i < len(right) and right[i] else LEFT for i in range(len(names))]
    head = "".join(f"<th{side}>{escape(name)}</th>" for name, side in zip(names, sides, strict=True))
    body = "".join(
        _row(row, sides, TOMBSTONE if i < len(tombstones) and tombstones[i] else "null") for i, row in enumerate(rows)
    )
    below = f"<p>{escape(caption)}</p>" if caption else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _row(row: Sequence[Any], sides: Sequence[str], null: str) -> str:
    return f"<tr>{''.join(_cell(value, side, null) for value, side in zip(row, sides, strict=True))}</tr>"


def _cell(value: Any, side: str, null: str) -> str:
    return f"<td{side}>{f'<i>{escape(null)}</i>' if value is None else escape(format_value(value))}</td>"
