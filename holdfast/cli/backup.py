"""`holdfast backup` and `holdfast restore`: a data folder as of one moment, and back."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from holdfast.backup import copying
from holdfast.backup.copying import check_new
from holdfast.backup.cut import Cut, make_backup
from holdfast.backup.manifest import Manifest, read_manifest
from holdfast.backup.restoring import restore as restore_backup
from holdfast.cli.printing import complaints, output, told_errors
from holdfast.client import Client
from holdfast.client.session import backup_request
from holdfast.config import DEFAULT_SERVICE, load
from holdfast.errors import BackupError, HoldfastError


def backup(target: Path, server: str) -> None:
    target = target.absolute()
    with told_errors():
        check_new(target)
        with Client(server) as client, kept_by(client) as cut, shown("backing up", cut.bytes) as progress:
            manifest = make_backup(cut, target, progress, lambda: end(client, cut))
        tell_backup(target, manifest)


@contextmanager
def kept_by(client: Client) -> Iterator[Cut]:
    """What the server has now, kept by it for as long as the block lasts."""
    cut = Cut.decode(client.ask(backup_request()))
    done = Event()

    def keep() -> None:
        while not done.wait(cut.seconds / 4):
            with suppress(HoldfastError):
                client.ask(backup_request(id=cut.id))

    keeping = Thread(target=keep, name="keep-backup", daemon=True)
    keeping.start()
    try:
        yield cut
    finally:
        done.set()
        keeping.join()
        with suppress(HoldfastError):
            client.ask(backup_request(id=cut.id, end=True))


def end(client: Client, cut: Cut) -> None:
    try:
        client.ask(backup_request(id=cut.id, end=True))
    except HoldfastError as cause:
        raise BackupError(
            "the server did not keep its files until they were copied",
            detail=f"{cause.message}.",
            hint="It has stopped, or was not reached for too long: make the backup again.",
        ) from cause


def restore(source: Path, data_dir: Path | None, config: Path | None) -> None:
    source = source.absolute()
    with told_errors():
        manifest = read_manifest(source)
        service = manifest.about.service_id
        flags = {"service_id": service, **({"data_dir": data_dir} if data_dir else {})}
        target = load(flags, file=config).data_dir
        check_new(target)
        with shown("restoring", manifest.bytes) as progress:
            restore_backup(source, target, progress)
        tell_restored(target, manifest, told_folder=data_dir is not None)


@contextmanager
def shown(doing: str, total: int) -> Iterator[copying.Progress]:
    """A bar of the bytes, on a terminal."""
    console = complaints()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(doing, total=total)
        yield lambda more: bar.advance(task, more)


def tell_backup(target: Path, manifest: Manifest) -> None:
    about, console = manifest.about, output()
    console.print(Text(f'Service "{about.service_id}" as of {moment(about.time)} is in {target}:', style="bold"))
    parts = {"the store": "store/", "the broker's topics": "kafka/"}
    for what, prefix in parts.items():
        files = [file for file in manifest.files if file.path.startswith(prefix)]
        if files:
            console.print(Text(f"  {what}: {decimal(sum(file.bytes for file in files))} in {len(files)} files"))
    if not about.embedded:
        console.print(Text(f"  The topics are not: Kafka cluster {about.kafka_cluster} keeps them."))
    console.print(Text(f"Restore it with: holdfast restore {target} --data-dir FOLDER"))


def tell_restored(target: Path, manifest: Manifest, *, told_folder: bool) -> None:
    about, console = manifest.about, output()
    console.print(Text(f'Service "{about.service_id}" as of {moment(about.time)} is in {target}.', style="bold"))
    command = "holdfast start" + (f" --data-dir {target}" if told_folder else "")
    command += "" if about.service_id == DEFAULT_SERVICE else f" --service-id {about.service_id}"
    command += "" if about.embedded else " --kafka …"
    console.print(Text(f"Start it with: {command}"))


def moment(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
