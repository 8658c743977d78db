"""Tables that fit: narrower columns when the terminal is narrow, and below each other as a last resort."""

from collections.abc import Iterator, Sequence

from wcwidth import wcwidth

from holdfast.client.shown import padded, width

LEAST = 10
"""A column is not made narrower than this; a table that needs it is shown row by row instead."""
BETWEEN = " | "
FIRST_WIDTH = 8


class Layout:
    """The widths of a table's columns. With a `budget`, long values are folded; without, columns widen as needed.

    Values of `whole` columns, such as numbers, are never folded: others give way to them, and if that is not enough,
    rows are shown below each other.
    """

    def __init__(
        self, names: Sequence[str], right: Sequence[bool], budget: int | None, whole: Sequence[bool] | None = None
    ) -> None:
        self._names, self._right, self._budget = list(names), list(right), budget
        self._whole = self._right if whole is None else list(whole)
        self._least = [LEAST] * len(names)
        self._natural = [max(width(name), FIRST_WIDTH) for name in names]
        self.widths = list(self._natural)

    @property
    def is_vertical(self) -> bool:
        """True when the columns cannot stand beside each other."""
        return self._budget is not None and sum(self.widths) > self._room

    @property
    def _room(self) -> int:
        return (self._budget or 0) - len(BETWEEN) * (len(self._names) - 1)

    def fit(self, rows: Sequence[Sequence[str]]) -> None:
        """Choose the widths that these rows need, and that there is room for."""
        self._natural = [width(name) for name in self._names]
        self._take_in(rows)

    def share(self, wanted: Sequence[int]) -> None:
        """Choose widths before any row is known: what each column wants, and the rest for those that want 0."""
        if self._budget is None:
            return
        self._natural = [max(want or LEAST, width(name)) for want, name in zip(wanted, self._names, strict=True)]
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
        """The lines of a row; `number` is told where rows cannot stand in a table.

        A value that cannot be folded and is wider than any before it moves the columns: they get a heading again.
        """
        if self._budget is None:
            self.widths = [max(w, width(value)) for w, value in zip(self.widths, values, strict=True)]
        elif not self.is_vertical and any(
            whole and width(value) > w for whole, value, w in zip(self._whole, values, self.widths, strict=True)
        ):
            self._take_in([values])
            yield from self.heading()
        if self.is_vertical:
            yield from self._below(values, number)
        else:
            yield from self._lines(values)

    def _take_in(self, rows: Sequence[Sequence[str]]) -> None:
        for i, column in enumerate(zip(*rows, strict=True)):
            widest = max(map(width, column))
            self._natural[i] = max(self._natural[i], widest)
            if self._whole[i]:
                self._least[i] = max(self._least[i], widest)
        self._choose()

    def _choose(self) -> None:
        self.widths = list(self._natural)
        if self._budget is None:
            return
        level = max(self._natural, default=0)
        while sum(self.widths) > self._room and level > LEAST:
            level -= 1
            self.widths = [
                min(natural, max(least, level)) for natural, least in zip(self._natural, self._least, strict=True)
            ]

    def _lines(self, values: Sequence[str]) -> Iterator[str]:
        folded = [fold(value, w) for value, w in zip(values, self.widths, strict=True)]
        for i in range(max(map(len, folded))):
            parts = [cell[i] if i < len(cell) else "" for cell in folded]
            cells = [padded(p, w, right=r) for p, w, r in zip(parts, self.widths, self._right, strict=True)]
            yield BETWEEN.join(cells).rstrip()

    def _below(self, values: Sequence[str], number: int) -> Iterator[str]:
        yield f"-- row {number} --"
        budget = self._budget or 0
        widest = min(max(map(width, self._names)), max(budget // 2, LEAST))
        room = max(budget - widest - len(BETWEEN), LEAST)
        for name, value, whole in zip(self._names, values, self._whole, strict=True):
            names = fold(name, widest)
            parts = [value] if whole else fold(value, room)
            for i in range(max(len(names), len(parts))):
                left = padded(names[i] if i < len(names) else "", widest, right=False)
                yield f"{left}{BETWEEN}{parts[i] if i < len(parts) else ''}".rstrip()


def listing(names: Sequence[str], rows: Sequence[Sequence[str]], budget: int | None) -> Iterator[str]:
    """A table of texts as lines, the heading first. Values of one word are not folded."""
    whole = [not any(" " in value for value in column) for column in zip(*rows, strict=True)]
    layout = Layout(names, [False] * len(names), budget, whole)
    layout.fit(rows)
    yield from layout.heading()
    for number, row in enumerate(rows, 1):
        yield from layout.row(row, number)


def fold(text: str, columns: int) -> list[str]:
    """The text in pieces of at most so many columns of a terminal, cut between words where that wastes little."""
    pieces = []
    while width(text) > columns:
        end = cut_at(text, columns)
        space = text.rfind(" ", end // 2, end + 1)
        if space > 0:
            pieces.append(text[:space])
            text = text[space + 1 :]
        else:
            pieces.append(text[:end])
            text = text[end:]
    return [*pieces, text] if text or not pieces else pieces


def cut_at(text: str, columns: int) -> int:
    """How many characters fit; at least one, whatever it takes."""
    taken = 0
    for end, character in enumerate(text):
        taken += max(wcwidth(character), 0)
        if taken > columns:
            return max(end, 1)
    return len(text)
