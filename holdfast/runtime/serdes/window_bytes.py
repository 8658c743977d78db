"""Single windowed keys, for clients: the same layouts as `window` has for columns of keys."""

from dataclasses import dataclass
from struct import Struct

from holdfast.runtime.plan.windows import WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.window import MAX_TIME, has_sequence, layout_text, suffix_bytes, window_size

TIME_WINDOW, CHANGELOG_WINDOW, SESSION = Struct(">q"), Struct(">qi"), Struct(">qq")


@dataclass(frozen=True, slots=True)
class WindowBytes:
    """A windowed key as its parts: the bytes of the key alone, and its window in milliseconds.

    The end of a time window is exclusive, that of a session inclusive.
    """

    key: bytes
    start: int
    end: int
    sequence: int = 0
    """The number of this value among those of the same window; only changelogs have it."""


@dataclass(frozen=True, slots=True)
class WindowedKeyCodec:
    """How the keys of a windowed topic are written and read. Time windows need their size."""

    window: WindowInfo
    topic: WindowTopic = WindowTopic.TOPIC

    def __post_init__(self) -> None:
        if self.window.type is not WindowType.SESSION:
            window_size(self.window)

    def encode(self, parts: WindowBytes) -> bytes:
        """The bytes of a key. The end of a time window and, except in changelogs, the sequence number are lost."""
        if self.window.type is WindowType.SESSION:
            return parts.key + SESSION.pack(parts.end, parts.start)
        if self._has_sequence:
            return parts.key + CHANGELOG_WINDOW.pack(parts.start, parts.sequence)
        return parts.key + TIME_WINDOW.pack(parts.start)

    def decode(self, raw: bytes | None) -> WindowBytes | None:
        """The parts of a key; None for null and for no bytes, which are no key. ValueError if it is too short."""
        if not raw:
            return None
        width = suffix_bytes(self.window.type, self.topic)
        if len(raw) < width:
            raise ValueError(f"the key has {len(raw)} bytes, but {layout_text(self.window.type, self.topic)}")
        key, suffix = raw[:-width], raw[-width:]
        if self.window.type is WindowType.SESSION:
            end, start = SESSION.unpack(suffix)
            return WindowBytes(key, start, end)
        start, *sequence = (CHANGELOG_WINDOW if self._has_sequence else TIME_WINDOW).unpack(suffix)
        return WindowBytes(key, start, min(start + window_size(self.window), MAX_TIME), *sequence)

    @property
    def _has_sequence(self) -> bool:
        return has_sequence(self.window.type, self.topic)
