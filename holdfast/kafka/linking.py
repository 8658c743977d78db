"""Links to the files of a Kafka log: a copy of its folder at one moment that takes no time and no room.

Segments only grow, and all other files are replaced as a whole, so a link keeps what there is now: of a segment, the
bytes up to its present end. Kafka maps the indexes of a partition's last segment into memory and writes them there;
these are left out, and Kafka makes them again from the segment.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.errors import KafkaError

INDEXES = (".index", ".timeindex")
LEFT_OUT = frozenset({".lock", ".kafka_cleanshutdown"})
"""Who uses the folder, and that it was left in order, are not true of a copy."""


def link_log(log_dir: Path, into: Path) -> Mapping[Path, int]:
    """Link every file that a broker needs; gives the links and how much of each counts. The broker must stand still."""
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
