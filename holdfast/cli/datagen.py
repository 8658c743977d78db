"""`holdfast datagen`: write sample records to a topic."""

import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from holdfast.cli.console import error_output, output, print_errors
from holdfast.cli.feed import Feed, Pace
from holdfast.config import Settings, load
from holdfast.errors import ConfigError, nearest
from holdfast.names import TopicName
from holdfast.samples.catalog import SAMPLES
from holdfast.samples.sample import Sample


def run(
    name: str,
    *,
    topic: str | None,
    partitions: int,
    rate: float,
    count: int | None,
    seed: int,
    start: str | None,
    declare: bool,
    flags: Mapping[str, object],
    config: Path | None,
) -> None:
    with print_errors():
        sample = sample_named(name)
        to = TopicName(topic or sample.name)
        if declare:
            output().print(Text(sample.statement(to)))
            return
        pace = Pace(rate or None, count, None if start is None else moment(start))
        settings = at_kafka(load({key: value for key, value in flags.items() if value is not None}, file=config))
        create_topic(settings, to, partitions)
        with closing(Feed(settings, sample, to, seed=seed)) as feed:
            send(feed, sample, to, pace)


def sample_named(name: str) -> Sample:
    if name not in SAMPLES:
        raise ConfigError(f'unknown sample "{name}"', hint=nearest(name, list(SAMPLES), plural="samples"))
    return SAMPLES[name]


def moment(text: str) -> int:
    """A time as milliseconds; without a zone it is in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f'"{text}" is not a valid time', hint="Write it as 2024-01-31T12:00:00.") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def at_kafka(settings: Settings) -> Settings:
    """The settings with a Kafka cluster to write to: the configured one, or the data folder's embedded broker."""
    from holdfast.kafka.broker import stored_bootstrap

    if settings.kafka is not None:
        return settings
    bootstrap = stored_bootstrap(settings.data_dir)
    if bootstrap is None:
        raise ConfigError(
            "no Kafka cluster to write to",
            detail=f"No server with an embedded broker has run in {settings.data_dir}.",
            hint="Start one with: holdfast start. Or name a cluster with --kafka host:9092.",
        )
    return settings.at_kafka(bootstrap)


def create_topic(settings: Settings, topic: TopicName, partitions: int) -> None:
    from holdfast.kafka.librdkafka.admin import Admin
    from holdfast.kafka.port import TopicSpec

    admin = Admin(settings)
    if not admin.exists(topic):
        admin.create(TopicSpec(name=topic, partitions=partitions))


def send(feed: Feed, sample: Sample, topic: TopicName, pace: Pace) -> None:
    """Send records and show the progress, until all are sent or Ctrl-C."""
    console = error_output()
    speed = "as fast as possible" if pace.rate is None else f"{pace.rate:g} per second"
    console.print(Text(f'Sending {sample.name} to topic "{topic}", {speed}. Stop with Ctrl-C. Declare it with:', "dim"))
    console.print(Text(sample.statement(topic), "green"))
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    began = time.monotonic()

    def report(sent: int) -> None:
        bar.update(task, completed=sent, speed=f"{sent / max(time.monotonic() - began, 0.001):,.0f}/s")

    with bar:
        task = bar.add_task(sample.name, total=pace.count, speed="")
        with suppress(KeyboardInterrupt):
            feed.run(pace, threading.Event(), report)
    took = time.monotonic() - began
    output().print(Text(f"Sent {feed.sent:,} records in {took:.1f} s."))
