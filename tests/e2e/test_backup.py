"""A backup of a server under load is consistent: restored, it continues with nothing lost or repeated."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .load import Load, Written
from .model import Model, folded
from .rig import CATCH_UP_SECONDS, Rig
from .server import Server, free_port, servers, wait_for
from .topics import read

SERVICE = "backedup"
FAST = 12.0
"""Batches per second: the tests wait for hundreds of records."""


def holdfast(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("holdfast")), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def back_up(server: Server, to: Path) -> Path:
    done = holdfast("backup", str(to), "--server", server.url)
    assert done.returncode == 0, done.stderr
    assert f'Backed up service "{server.service_id}" as of' in done.stdout
    return to


def restored(backup: Path, to: Server) -> Server:
    done = holdfast("restore", str(backup), "--data-dir", str(to.data_dir))
    assert done.returncode == 0, done.stderr
    return to


def with_own_broker(server: Server) -> Server:
    """A server whose broker listens on a known port."""
    port = free_port()
    server.broker_port, server.kafka = port, f"127.0.0.1:{port}"
    return server


def written_in(kafka: str, load: Load) -> list[Written]:
    """What the topics of a load hold, in the form of `Load.written`."""
    found = []
    for topic in (load.events, load.facts):
        for record in read(kafka, topic):
            value = decoded(record.value)
            found.append(Written(topic, record.partition, record.offset, record.timestamp, str(record.key), value))
    return found


def decoded(value: bytes | None) -> dict[str, object] | bytes | None:
    try:
        return None if value is None else json.loads(value)
    except ValueError:
        return value


def records_in(model: Model) -> int:
    return len(model.streams["BIG"])


@pytest.mark.timeout(1500)
def test_a_server_with_its_own_broker_is_backed_up_killed_and_restored(tmp_path: Path) -> None:
    with servers(tmp_path, None) as make:
        server = with_own_broker(make(SERVICE))
        server.start()
        with Rig(server, seed=11, batches_per_second=FAST) as rig:
            rig.declare()
            wait_for("rows in a sink", lambda: len(read(rig.kafka, rig.sink("BIG"))) > 100, CATCH_UP_SECONDS)
            backup = back_up(server, tmp_path / "backup")
            wait_for("the load continues", lambda: len(rig.load.written()) > 1500, CATCH_UP_SECONDS)
            rig.load.stop()
            # Killed during another backup: no harm to the data, and no backup.
            maker = subprocess.Popen(
                [sys.executable, "-c", INTERRUPTED, server.url, str(tmp_path / "interrupted")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert maker.stdout is not None
            assert maker.stdout.readline() == "begun\n"
            server.kill()
            maker.communicate(timeout=60)
            assert not (tmp_path / "interrupted").exists()
            server.start()
            assert not (server.data_dir / "backup").exists()
            whole = rig.finish()
            first = written_in(rig.kafka, rig.load)
            assert server.terminate() == 0

        other = with_own_broker(restored(backup, make(SERVICE, "restored")))
        assert holdfast("restore", str(backup), "--data-dir", str(other.data_dir)).returncode == 1
        other.start()
        with Rig(other, seed=12, number=1_000_000, batches_per_second=FAST) as later:
            # The topics are those of the backup: of each partition, a first part of what was written.
            then = written_in(later.kafka, later.load)
            assert set(map(repr, then)) <= set(map(repr, first))
            restored_model = Model.of(then)
            assert 100 < records_in(restored_model) < records_in(whole)
            later.compare(restored_model)
            later.load.start()
            wait_for("more is written", lambda: len(later.load.written()) > 300, CATCH_UP_SECONDS)
            later.load.stop()
            later.compare(Model.of(written_in(later.kafka, later.load)))


INTERRUPTED = """
import sys
from pathlib import Path
from holdfast.backup.cut import Cut, make_backup
from holdfast.client import Client
from holdfast.client.session import backup_request

def finish():
    client.send(backup_request(id=cut.id, end=True))

def wait(_copied):
    print("begun", flush=True)
    sys.stdin.read()

client = Client(sys.argv[1])
cut = Cut.decode(client.send(backup_request()))
make_backup(cut, Path(sys.argv[2]), wait, finish)
"""
"""Begins a backup, and continues it when its input ends."""


@pytest.mark.timeout(1500)
def test_a_server_on_an_external_kafka_continues_from_a_backup_and_reports_when_it_would_repeat_rows(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = make_server("elsewhere")
    with Rig(server, seed=21, batches_per_second=FAST) as rig:
        rig.begin()
        wait_for("rows in a sink", lambda: len(read(rig.kafka, rig.sink("BIG"))) > 100, CATCH_UP_SECONDS)
        old = back_up(server, tmp_path / "old")
        stale = restored(old, make_server("elsewhere", "old"))
        stale.launch()
        wait_for("the load continues", lambda: len(rig.load.written()) > 1000, CATCH_UP_SECONDS)
        rig.finish()
        new = back_up(server, tmp_path / "new")
        second = restored(new, make_server("elsewhere", "new"))
        assert stale.wait_ended(300) == 1, "two servers of one service"
        assert "another server runs with service id" in stale.log_of_last_start()
        server.kill()
        rig.server = second
        second.start()
        more = Load(rig.kafka, rig.load.events, rig.load.facts, seed=22, number=1_000_000, batches_per_second=FAST)
        more.start()
        wait_for("more is written", lambda: len(more.written()) > 300, CATCH_UP_SECONDS)
        more.stop()
        model = Model.of(written_in(rig.kafka, rig.load))
        rig.compare(model)
        assert second.terminate() == 0

        # The old backup lacks what was published since: the server says so, and continues only with --republish.
        stale.launch()
        assert stale.wait_ended(300) == 1
        assert "has not yet computed" in stale.log_of_last_start()
        assert "--republish" in stale.log_of_last_start()
        stale.start("--republish")
        rig.server = stale
        for name in ("TOTALS", "FACTS", "BY_TAG"):
            expected = model.tables[name]
            wait_for(f"table {name}", lambda name=name, expected=expected: rig.rows(name) == expected, CATCH_UP_SECONDS)
        sink = rig.sink("TOTALS")
        wait_for("the sink", lambda: folded(read(rig.kafka, sink)) == model.tables["TOTALS"], CATCH_UP_SECONDS)
        rows = [(record.key, record.value) for record in read(rig.kafka, rig.sink("BIG"))]
        assert len(rows) > len(set(rows)) == len(model.streams["BIG"])
