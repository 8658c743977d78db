"""`holdfast jars`: have the jars at hand before they are needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from holdfast.cli.printing import complaints, told_errors
from holdfast.config import Settings, load
from holdfast.jars import JarSet, fetch_jars, find_java


class Bar:
    """A progress bar that appears with the first jar to fetch; nothing to fetch shows nothing."""

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
    with told_errors():
        settings = load(file=config)
        java = find_java(settings.java_home)
        found: dict[JarSet, Sequence[Path]] = {}
        for which in JarSet:
            bar = Bar(f"fetching jars of {which}", complaints())
            try:
                found[which] = fetch_jars(
                    which, settings.jar_dir, java=java, ivy_settings=settings.ivy_settings, progress=bar
                )
            finally:
                bar.close()
        if archive:
            _have_archives(settings, java, found)


def _have_archives(settings: Settings, java: Path, jars: Mapping[JarSet, Sequence[Path]]) -> None:
    """All starts without them too, so that one cannot be made is no error."""
    from holdfast.kafka.archiving import make_archive as make_broker_archive
    from holdfast.kafka.broker import broker_archive
    from holdfast.runtime.spark import archiving

    of_spark = archiving.spark_archive(settings.jar_dir, java, jars[JarSet.SPARK])
    of_broker = broker_archive(settings.jar_dir, java, jars[JarSet.BROKER])
    console = complaints()
    with console.status("archiving classes, for faster starts"), TemporaryDirectory() as folder:
        try:
            if not of_broker.is_file():
                make_broker_archive(of_broker, settings)
            if not of_spark.is_file():
                archiving.make_archive(of_spark, java=java, jars=jars[JarSet.SPARK], work_dir=Path(folder))
        except Exception as problem:
            console.print(f"classes could not be archived, and starts take longer: {problem}", style="yellow")
