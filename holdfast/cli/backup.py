"""`holdfast backup` and `holdfast restore`: copy a data folder as of one moment, and restore the copy."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from holdfast.backup.cut import Cut, make_backup
from holdfast.backup.files import Progress as CopyProgress
from holdfast.backup.files import check_new
from holdfast.backup.manifest import Manifest, read_manifest
from holdfast.backup.restore import restore as restore_backup
from holdfast.cli.console import error_output, output, print_errors
from holdfast.client import Client
from holdfast.client.session import backup_request
from holdfast.config import DEFAULT_SERVICE, load
from holdfast.errors import BackupError, HoldfastError


def backup(target: Path, server: str) -> None:
    target = target.absolute()
    with print_errors():
        check_new(target)
        with Client(server) as client, pinned_files(client) as cut, progress_bar("backing up", cut.bytes) as progress:
            manifest = make_backup(cut, target, progress, lambda: end(client, cut))
        print_backup(target, manifest)


@contextmanager
def pinned_files(client: Client) -> Iterator[Cut]:
    """The server's files as of this moment, pinned by the server while the block runs."""
    cut = Cut.decode(client.send(backup_request()))
    done = Event()

    def keep_alive() -> None:
        while not done.wait(cut.seconds / 4):
            with suppress(HoldfastError):
                client.send(backup_request(id=cut.id))

    heartbeat = Thread(target=keep_alive, name="backup-keep-alive", daemon=True)
    heartbeat.start()
    try:
        yield cut
    finally:
        done.set()
        heartbeat.join()
        with suppress(HoldfastError):
            client.send(backup_request(id=cut.id, end=True))


def end(client: Client, cut: Cut) -> None:
    try:
        client.send(backup_request(id=cut.id, end=True))
    except HoldfastError as cause:
        raise BackupError(
            "the server released its files before they were copied",
            detail=f"{cause.message}.",
            hint="It stopped, or could not be reached for too long. Make the backup again.",
        ) from cause


def restore(source: Path, data_dir: Path | None, config: Path | None) -> None:
    source = source.absolute()
    with print_errors():
        manifest = read_manifest(source)
        service = manifest.about.service_id
        flags = {"service_id": service, **({"data_dir": data_dir} if data_dir else {})}
        target = load(flags, file=config).data_dir
        check_new(target)
        with progress_bar("restoring", manifest.bytes) as progress:
            restore_backup(source, target, progress)
        print_restored(target, manifest, folder_named=data_dir is not None)


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[CopyProgress]:
    """A progress bar in bytes, if the console is a terminal."""
    console = error_output()
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
        task = bar.add_task(description, total=total)
        yield lambda copied: bar.advance(task, copied)


def print_backup(target: Path, manifest: Manifest) -> None:
    about, console = manifest.about, output()
    console.print(Text(f'Backed up service "{about.service_id}" as of {moment(about.time)} to {target}:', style="bold"))
    parts = {"the store": "store/", "the broker's topics": "kafka/"}
    for what, prefix in parts.items():
        files = [file for file in manifest.files if file.path.startswith(prefix)]
        if files:
            console.print(Text(f"  {what}: {decimal(sum(file.bytes for file in files))} in {len(files)} files"))
    if not about.embedded:
        console.print(Text(f"  Topics are not included: they are in Kafka cluster {about.kafka_cluster}."))
    console.print(Text(f"Restore it with: holdfast restore {target} --data-dir FOLDER"))


def print_restored(target: Path, manifest: Manifest, *, folder_named: bool) -> None:
    about, console = manifest.about, output()
    console.print(Text(f'Restored service "{about.service_id}" as of {moment(about.time)} to {target}.', style="bold"))
    command = "holdfast start" + (f" --data-dir {target}" if folder_named else "")
    command += "" if about.service_id == DEFAULT_SERVICE else f" --service-id {about.service_id}"
    command += "" if about.embedded else " --kafka …"
    console.print(Text(f"Start it with: {command}"))


def moment(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
