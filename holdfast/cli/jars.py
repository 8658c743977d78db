"""`holdfast jars`: have the jars at hand before they are needed."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from holdfast.cli.printing import complaints, told_errors
from holdfast.config import load
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


def run(config: Path | None) -> None:
    with told_errors():
        settings = load(file=config)
        java = find_java(settings.java_home)
        for which in JarSet:
            bar = Bar(f"fetching jars of {which}", complaints())
            try:
                fetch_jars(which, settings.jar_dir, java=java, ivy_settings=settings.ivy_settings, progress=bar)
            finally:
                bar.close()
