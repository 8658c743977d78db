"""`holdfast jars`: download the jars before they are needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from holdfast.cli.console import error_output, print_errors
from holdfast.config import Settings, load
from holdfast.jars import JarSet, fetch_jars, find_java


class Bar:
    """A progress bar that appears with the first jar to fetch."""

    def __init__(self, title: str, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[jar]}"),
        )
        self._bar = Progress(*columns, console=console)
        self._title = title
        self._task: TaskID | None = None

    def __call__(self, done: int, total: int, jar: str) -> None:
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=total, jar=jar)
        self._bar.update(self._task, completed=done, jar=jar)

    def close(self) -> None:
        self._bar.stop()


def run(config: Path | None, *, archive: bool = False) -> None:
    with print_errors():
        settings = load(file=config)
        java = find_java(settings.java_home)
        found: dict[JarSet, Sequence[Path]] = {}
        for which in JarSet:
            bar = Bar(f"fetching jars for {which}", error_output())
            try:
                found[which] = fetch_jars(
                    which, settings.jar_dir, java=java, ivy_settings=settings.ivy_settings, progress=bar
                )
            finally:
                bar.close()
        if archive:
            _make_archives(settings, java, found)


def _make_archives(settings: Settings, java: Path, jars: Mapping[JarSet, Sequence[Path]]) -> None:
    """Create missing class archives. A failure is only a warning, because they are optional."""
    from holdfast.kafka.broker import broker_archive
    from holdfast.kafka.broker_archive import make_archive as make_broker_archive
    from holdfast.runtime.spark import archive as classes

    spark_path = classes.spark_archive(settings.jar_dir, java, jars[JarSet.SPARK])
    broker_path = broker_archive(settings.jar_dir, java, jars[JarSet.BROKER])
    console = error_output()
    with console.status("archiving classes, for faster starts"), TemporaryDirectory() as folder:
        try:
            if not broker_path.is_file():
                make_broker_archive(broker_path, settings)
            if not spark_path.is_file():
                classes.make_archive(spark_path, java=java, jars=jars[JarSet.SPARK], work_dir=Path(folder))
        except Exception as problem:
            console.print(f"classes could not be archived, so starts take longer: {problem}", style="yellow")
