"""Links to a Kafka log: what the broker writes after them is not in them."""

from pathlib import Path

from holdfast.kafka.log_links import link_log


def test_links_keep_what_there_was(tmp_path: Path) -> None:
    log, links = tmp_path / "log", tmp_path / "links"
    (log / "t-0").mkdir(parents=True)
    first, last = "00000000000000000000", "00000000000000000150"
    for name, contents in {
        "meta.properties": b"id",
        ".lock": b"",
        f"t-0/{first}.log": b"closed",
        f"t-0/{first}.index": b"of closed",
        f"t-0/{last}.log": b"open",
        f"t-0/{last}.index": b"\0" * 100,
        f"t-0/{last}.timeindex": b"\0" * 100,
        f"t-0/{last}.snapshot": b"producers",
        "t-0/leader-epoch-checkpoint": b"old",
    }.items():
        (log / name).write_bytes(contents)

    sizes = {str(link.relative_to(links)): size for link, size in link_log(log, links).items()}
    assert sizes == {
        "meta.properties": 2,
        f"t-0/{first}.log": 6,
        f"t-0/{first}.index": 9,
        f"t-0/{last}.log": 4,
        f"t-0/{last}.snapshot": 9,
        "t-0/leader-epoch-checkpoint": 3,
    }

    # As Kafka does: append, replace, delete.
    with (log / "t-0" / f"{last}.log").open("ab") as segment:
        segment.write(b" and more")
    (log / "t-0" / "new").write_bytes(b"new")
    (log / "t-0" / "new").rename(log / "t-0" / "leader-epoch-checkpoint")
    (log / "t-0" / f"{first}.log").unlink()
    assert (links / "t-0" / f"{last}.log").read_bytes()[:4] == b"open"
    assert (links / "t-0" / "leader-epoch-checkpoint").read_bytes() == b"old"
    assert (links / "t-0" / f"{first}.log").read_bytes() == b"closed"
