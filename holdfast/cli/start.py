"""`holdfast start`: run a server until it receives a signal."""

import logging
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.text import Text

from holdfast.cli.console import output, print_errors
from holdfast.cli.processes import end_started_processes, ended_after
from holdfast.config import DEFAULT_SERVER, SECTIONS, armed_crash_point, load, stepped_clock_file
from holdfast.crash import arm
from holdfast.errors import ConfigError
from holdfast.wall_clock import SteppedClock

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(flags: Mapping[str, object], others: Sequence[str], config: Path | None) -> None:
    console = output()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

    def report(line: str) -> None:
        console.print(Text(line, style="dim"))
        console.file.flush()

    with print_errors():
        arm(armed_crash_point())
        settings = load(
            {**pairs(others), **{name: value for name, value in flags.items() if value is not None}}, file=config
        )
        from holdfast.server.http.server import address, listen, serve

        with listen(settings) as listener, end_started_processes():
            # Importing Spark takes a second: report a bad setting or a used port first.
            from holdfast.app import start_service

            for number in SIGNALS:
                signal.signal(number, signal.default_int_handler)
            file = stepped_clock_file()
            service = start_service(settings, progress=report, clock=SteppedClock(file) if file else None)
            try:
                with stopped_by_signals() as stop:
                    console.print(Text(f"Holdfast {service.version} is listening on {address(listener)}", style="bold"))
                    if service.settings.kafka:
                        console.print(Text(f"Kafka is at {service.settings.kafka}"))
                    server = "" if address(listener) == DEFAULT_SERVER else f" --server {address(listener)}"
                    console.print(Text(f"Connect with: holdfast sql{server}  Stop with Ctrl-C."))
                    console.file.flush()
                    serve(service, settings, stop=stop, listener=listener)
                    report("stopping")
            finally:
                with ended_after(settings.stop_timeout):
                    service.stop()


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set while the block runs."""
    stop = threading.Event()

    def set_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, set_stop) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pairs(texts: Sequence[str]) -> dict[str, object]:
    """Parse `name=value` settings; `kafka.x` and `spark.x` are properties of Kafka and Spark."""
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f'"{text}" is not a setting', hint="Write -s name=value.")
        name = name.strip()
        section, dot, rest = name.partition(".")
        if dot and section in SECTIONS:
            properties = found.setdefault(SECTIONS[section], {})
            assert isinstance(properties, dict)
            properties[rest] = value
        else:
            found[name.replace("-", "_")] = value
    return found
