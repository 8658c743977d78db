"""A data folder of plain files and a cut of it."""

from pathlib import Path

from holdfast.backup.cut import Cut, CutFile
from holdfast.backup.manifest import About, Reached
from holdfast.names import ServiceId, StoreId

CONTENTS = {"store/store.duckdb": b"s" * 5000, "kafka/log/t-0/00.log": b"k" * 300, "kafka/broker.json": b"{}"}


def about(*, embedded: bool = True) -> About:
    return About(
        release="0.1.0",
        service_id=ServiceId("shop"),
        store_id=StoreId("store-1"),
        time=1_700_000_000_000,
        made_at="2023-11-14T22:13:20+00:00",
        kafka_cluster="cluster-1",
        embedded=embedded,
        read=(Reached("orders", 0, 12),),
        published=(),
    )


def data_folder(root: Path) -> Cut:
    for name, contents in CONTENTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(contents)
    files = [CutFile(name, name, len(contents)) for name, contents in CONTENTS.items()]
    return Cut("b1", 60.0, str(root), about(), files)


def contents(root: Path) -> dict[str, bytes]:
    """The contents of the files of a data folder, by name."""
    return {name: (root / name).read_bytes() for name in CONTENTS}
