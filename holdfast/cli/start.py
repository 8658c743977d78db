"""`holdfast start`: a server until it is told to stop."""

import logging
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.text import Text

from holdfast.cli.printing import output, told_errors
from holdfast.cli.processes import nothing_left
from holdfast.config import DEFAULT_SERVER, SECTIONS, load
from holdfast.errors import ConfigError

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(flags: Mapping[str, object], others: Sequence[str], config: Path | None) -> None:
    console = output()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

    def say(told: str) -> None:
        console.print(Text(told, style="dim"))
        console.file.flush()

    with told_errors():
        settings = load(
            {**pairs(others), **{name: value for name, value in flags.items() if value is not None}}, file=config
        )
        from holdfast.server.serve import address, listen, serve

        with listen(settings) as taken, nothing_left():
            # Spark takes a second to import; a wrong setting or a taken port is told before.
            from holdfast.app import start_service

            for number in SIGNALS:
                signal.signal(number, signal.default_int_handler)
            service = start_service(settings, progress=say)
            try:
                with stopped_by_signals() as stop:
                    console.print(Text(f"Holdfast {service.version} listens on {address(taken)}", style="bold"))
                    if service.settings.kafka:
                        console.print(Text(f"Kafka is at {service.settings.kafka}"))
                    server = "" if address(taken) == DEFAULT_SERVER else f" --server {address(taken)}"
                    console.print(Text(f'Ask with: holdfast sql{server} -e "SHOW STREAMS;"  Stop with Ctrl-C.'))
                    console.file.flush()
                    serve(service, settings, stop=stop, taken=taken)
                    say("stopping")
            finally:
                service.stop()


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set, for as long as the block lasts."""
    stop = threading.Event()

    def told(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, told) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pairs(given: Sequence[str]) -> dict[str, object]:
    """`name=value` settings; `kafka.x` and `spark.x` are properties of those two."""
    found: dict[str, object] = {}
    for text in given:
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
