"""Tables that fit the terminal: with narrower columns or, as a last resort, with rows shown vertically."""

from collections.abc import Iterator, Sequence

from wcwidth import wcwidth

from holdfast.client.display import padded, width

MIN_WIDTH = 10
"""Minimum width of a column; a table that would need narrower columns is shown vertically."""
SEPARATOR = " | "
FIRST_WIDTH = 8


class TableLayout:
    """The widths of a table's columns. With a `budget`, long values are folded; without, columns widen as needed.

    Values of `unfolded` columns, such as numbers, are never folded: other columns get narrower, and if that is not
    enough, rows are shown vertically.
    """

    def __init__(
        self, names: Sequence[str], right: Sequence[bool], budget: int | None, unfolded: Sequence[bool] | None = None
    ) -> None:
        self._names, self._right, self._budget = list(names), list(right), budget
        self._unfolded = self._right if unfolded is None else list(unfolded)
        self._minimum = [MIN_WIDTH] * len(names)
        self._natural = [max(width(name), FIRST_WIDTH) for name in names]
        self.widths = list(self._natural)

    @property
    def is_vertical(self) -> bool:
        """Whether the columns do not fit side by side."""
        return self._budget is not None and sum(self.widths) > self._room

    @property
    def _room(self) -> int:
        return (self._budget or 0) - len(SEPARATOR) * (len(self._names) - 1)

    def fit(self, rows: Sequence[Sequence[str]]) -> None:
        """Choose the widths for these rows, within the budget."""
        self._natural = [width(name) for name in self._names]
        self._widen(rows)

    def share(self, wanted: Sequence[int]) -> None:
        """Choose widths before any row is known: the wanted ones, and the remaining room for those that are 0."""
        if self._budget is None:
            return
        self._natural = [max(want or MIN_WIDTH, width(name)) for want, name in zip(wanted, self._names, strict=True)]
        open_ended = [i for i, want in enumerate(wanted) if want == 0]
        room = self._room - sum(self._natural)
        for i in open_ended:
            self._natural[i] += max(0, min(room // len(open_ended), 40 - self._natural[i]))
        self._choose()

    def heading(self) -> Iterator[str]:
        if not self.is_vertical:
            yield from self._lines(self._names)
            yield "-+-".join("-" * w for w in self.widths)

    def row(self, values: Sequence[str], number: int) -> Iterator[str]:
        """The lines of a row; `number` is shown if rows are vertical.

        An unfolded value that is wider than its column widens the column, and the heading is repeated.
        """
        if self._budget is None:
            self.widths = [max(w, width(value)) for w, value in zip(self.widths, values, strict=True)]
        elif not self.is_vertical and any(
            unfolded and width(value) > w
            for unfolded, value, w in zip(self._unfolded, values, self.widths, strict=True)
        ):
            self._widen([values])
            yield from self.heading()
        if self.is_vertical:
            yield from self._vertical_lines(values, number)
        else:
            yield from self._lines(values)

    def _widen(self, rows: Sequence[Sequence[str]]) -> None:
        for i, column in enumerate(zip(*rows, strict=True)):
            widest = max(map(width, column))
            self._natural[i] = max(self._natural[i], widest)
            if self._unfolded[i]:
                self._minimum[i] = max(self._minimum[i], widest)
        self._choose()

    def _choose(self) -> None:
        self.widths = list(self._natural)
        if self._budget is None:
            return
        level = max(self._natural, default=0)
        while sum(self.widths) > self._room and level > MIN_WIDTH:
            level -= 1
            self.widths = [
                min(natural, max(minimum, level)) for natural, minimum in zip(self._natural, self._minimum, strict=True)
            ]

    def _lines(self, values: Sequence[str]) -> Iterator[str]:
        folded = [fold(value, w) for value, w in zip(values, self.widths, strict=True)]
        for i in range(max(map(len, folded))):
            parts = [cell[i] if i < len(cell) else "" for cell in folded]
            cells = [padded(p, w, right=r) for p, w, r in zip(parts, self.widths, self._right, strict=True)]
            yield SEPARATOR.join(cells).rstrip()

    def _vertical_lines(self, values: Sequence[str], number: int) -> Iterator[str]:
        yield f"-- row {number} --"
        budget = self._budget or 0
        widest = min(max(map(width, self._names)), max(budget // 2, MIN_WIDTH))
        room = max(budget - widest - len(SEPARATOR), MIN_WIDTH)
        for name, value, unfolded in zip(self._names, values, self._unfolded, strict=True):
            names = fold(name, widest)
            parts = [value] if unfolded else fold(value, room)
            for i in range(max(len(names), len(parts))):
                left = padded(names[i] if i < len(names) else "", widest, right=False)
                yield f"{left}{SEPARATOR}{parts[i] if i < len(parts) else ''}".rstrip()


def listing(names: Sequence[str], rows: Sequence[Sequence[str]], budget: int | None) -> Iterator[str]:
    """A table of texts as lines, the heading first. Columns of single words are not folded."""
    unfolded = [not any(" " in value for value in column) for column in zip(*rows, strict=True)]
    layout = TableLayout(names, [False] * len(names), budget, unfolded)
    layout.fit(rows)
    yield from layout.heading()
    for number, row in enumerate(rows, 1):
        yield from layout.row(row, number)


def fold(text: str, columns: int) -> list[str]:
    """Split the text into lines of at most `columns` terminal columns, preferably between words."""
    lines = []
    while width(text) > columns:
        end = cut_at(text, columns)
        space = text.rfind(" ", end // 2, end + 1)
        if space > 0:
            lines.append(text[:space])
            text = text[space + 1 :]
        else:
            lines.append(text[:end])
            text = text[end:]
    return [*lines, text] if text or not lines else lines


def cut_at(text: str, columns: int) -> int:
    """The number of characters that fit, but at minimum one."""
    used = 0
    for end, character in enumerate(text):
        used += max(wcwidth(character), 0)
        if used > columns:
            return max(end, 1)
    return len(text)
