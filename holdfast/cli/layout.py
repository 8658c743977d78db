"""Tables that fit: narrower columns when the terminal is narrow, and below each other as a last resort."""

from collections.abc import Iterator, Sequence

from wcwidth import wcwidth

from holdfast.client.shown import padded, width

LEAST = 6
"""A column is not made narrower than this; a table that needs it is shown row by row instead."""
BETWEEN = " | "
FIRST_WIDTH = 8


class Layout:
    """The widths of a table's columns. With a `budget`, long values are folded; without, columns widen as needed."""

    def __init__(self, names: Sequence[str], right: Sequence[bool], budget: int | None) -> None:
        self._names, self._right, self._budget = list(names), list(right), budget
        self.widths = [max(width(name), FIRST_WIDTH) for name in names]

    @property
    def is_vertical(self) -> bool:
        """True when the columns cannot stand beside each other."""
        return self._budget is not None and sum(self.widths) + len(BETWEEN) * (len(self.widths) - 1) > self._budget

    def fit(self, rows: Sequence[Sequence[str]]) -> None:
        """Choose the widths that these rows need, and that there is room for."""
        self._choose([max(map(width, column)) for column in zip(self._names, *rows, strict=True)])

    def share(self, wanted: Sequence[int]) -> None:
        """Choose widths before any row is known: what each column wants, and the rest for those that want 0."""
        if self._budget is None:
            return
        least = [max(want, width(name)) for want, name in zip(wanted, self._names, strict=True)]
        open_ended = [i for i, want in enumerate(wanted) if want == 0]
        room = self._budget - len(BETWEEN) * (len(least) - 1) - sum(least)
        for i in open_ended:
            least[i] += max(0, min(room // len(open_ended), 40 - least[i]))
        self._choose(least)

    def _choose(self, natural: Sequence[int]) -> None:
        self.widths = list(natural)
        if self._budget is None:
            return
        room = self._budget - len(BETWEEN) * (len(natural) - 1)
        level = max(natural, default=0)
        while sum(min(n, level) for n in natural) > room and level > LEAST:
            level -= 1
        self.widths = [min(n, level) for n in natural]

    def heading(self) -> Iterator[str]:
        if not self.is_vertical:
            yield from self._lines(self._names)
            yield "-+-".join("-" * w for w in self.widths)

    def row(self, values: Sequence[str], number: int) -> Iterator[str]:
        """The lines of a row; `number` is told where rows cannot stand in a table."""
        if self._budget is None:
            self.widths = [max(w, width(value)) for w, value in zip(self.widths, values, strict=True)]
        if self.is_vertical:
            yield from self._below(values, number)
        else:
            yield from self._lines(values)

    def _lines(self, values: Sequence[str]) -> Iterator[str]:
        folded = [fold(value, w) for value, w in zip(values, self.widths, strict=True)]
        for i in range(max(map(len, folded))):
            parts = [cell[i] if i < len(cell) else "" for cell in folded]
            cells = [padded(p, w, right=r) for p, w, r in zip(parts, self.widths, self._right, strict=True)]
            yield BETWEEN.join(cells).rstrip()

    def _below(self, values: Sequence[str], number: int) -> Iterator[str]:
        yield f"-- row {number} --"
        widest = max(map(width, self._names))
        room = max((self._budget or 0) - widest - len(BETWEEN), LEAST)
        for name, value in zip(self._names, values, strict=True):
            first, *more = fold(value, room)
            yield f"{padded(name, widest, right=False)}{BETWEEN}{first}".rstrip()
            yield from (f"{' ' * widest}{BETWEEN}{part}".rstrip() for part in more)


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
