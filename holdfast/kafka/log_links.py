"""Hard links to the files of a Kafka log: a snapshot of its folder that takes no time and no space.

Segments only grow and all other files are replaced as a whole, so a link preserves the present contents: of a segment,
the bytes up to its present end. Kafka writes the indexes of a partition's last segment through memory maps; these are
left out, and Kafka rebuilds them from the segment.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.errors import KafkaError

INDEXES = (".index", ".timeindex")
LEFT_OUT = frozenset({".lock", ".kafka_cleanshutdown"})
"""The lock and the clean-shutdown mark do not apply to a copy."""


def link_log(log_dir: Path, into: Path) -> Mapping[Path, int]:
    """Link every file that a broker needs; returns the links and their sizes. The broker must be suspended."""
    sizes: dict[Path, int] = {}
    try:
        for file in files(log_dir):
            link = into / file.relative_to(log_dir)
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, link)
            sizes[link] = link.stat().st_size
    except OSError as cause:
        raise KafkaError(
            "the files of the embedded Kafka broker cannot be linked",
            detail=f"{cause}.",
            hint="A backup needs a data folder on a file system with hard links.",
        ) from cause
    return sizes


def files(log_dir: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(log_dir):
        last = max((name for name in names if name.endswith(".log")), default="").removesuffix(".log")
        for name in sorted(names):
            stem, suffix = os.path.splitext(name)
            if name not in LEFT_OUT and not (stem == last and suffix in INDEXES):
                yield Path(folder, name)
