"""The `holdfast` command."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.config import DEFAULT_SERVER
from holdfast.version import VERSION

app = typer.Typer(
    help="A streaming SQL database for Kafka.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Server = Annotated[str, typer.Option("--server", metavar="URL", help="URL of the server.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="TOML file with settings.")]


@app.command()
def start(
    kafka: Annotated[str | None, typer.Option(help="Bootstrap servers; default: an embedded broker.")] = None,
    spark_master: Annotated[
        str | None, typer.Option(help="Spark master, such as local[*] or spark://host:7077.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder for the store, the broker's data and logs.")] = None,
    service_id: Annotated[str | None, typer.Option(help="Service id; part of the names of internal topics.")] = None,
    http_host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="Listen beyond loopback, without authentication and TLS.")
    ] = None,
    http_port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")] = None,
    broker_port: Annotated[int | None, typer.Option(help="Port of the embedded broker; 0 picks a free one.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Set the store aside and rebuild it from Kafka.")] = False,
    republish: Annotated[
        bool,
        typer.Option("--republish", help="Continue from an older store; rows published since are published again."),
    ] = False,
    config: ConfigFile = None,
    setting: Annotated[
        list[str] | None, typer.Option("-s", "--set", metavar="NAME=VALUE", help="Any other setting; can be repeated.")
    ] = None,
) -> None:
    """Start a server and run it until Ctrl-C or SIGTERM."""
    from holdfast.cli.start import run

    flags = {
        "kafka": kafka,
        "spark_master": spark_master,
        "data_dir": data_dir,
        "service_id": service_id,
        "http_host": http_host,
        "insecure": insecure,
        "http_port": http_port,
        "broker_port": broker_port,
        "rebuild": rebuild or None,
        "republish": republish or None,
    }
    run(flags, setting or (), config)


@app.command()
def sql(
    execute: Annotated[str | None, typer.Option("-e", "--execute", metavar="SQL", help="Statements to run.")] = None,
    file: Annotated[Path | None, typer.Option("-f", "--file", help="File with statements to run.")] = None,
    server: Server = DEFAULT_SERVER,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORMAT", help="Output format: table, json or csv.")
    ] = "table",
    wait: Annotated[
        bool, typer.Option("--wait", help="After each statement that starts a query, wait until it has caught up.")
    ] = False,
) -> None:
    """Run statements from -e, a file or standard input on a server; without any, open a shell.

    A script ends at its first error, with exit code 1.
    """
    from holdfast.cli.sql import run

    run(execute, file, server, output, wait=wait)


@app.command("test")
def run_tests(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Test files, or folders of them.")],
    plans: Annotated[bool, typer.Option("--plans", help="The files contain recorded plans, one per line.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only run tests whose name contains this.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write a JSON report.")] = None,
    config: ConfigFile = None,
) -> None:
    """Run query tests, without a server and without Kafka."""
    from holdfast.cli.test import run

    run(paths, plans=plans, only=only, json=json, config=config)


@app.command()
def jars(
    archive: Annotated[bool, typer.Option("--archive", help="Also archive their classes, for faster starts.")] = False,
    config: ConfigFile = None,
) -> None:
    """Download the jars that Spark and the broker need. Prints nothing if they are already there."""
    from holdfast.cli.jars import run

    run(config, archive=archive)


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="How long to show the live table.")] = 10.0,
) -> None:
    """Run a complete pipeline in a minute: a broker, Spark, a stream and a live table. Cleans up after itself."""
    from holdfast.cli.demo import run

    run(seconds)


@app.command()
def status(
    server: Server = DEFAULT_SERVER,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the health of a server and its queries. Exit code 0: healthy; 2: unhealthy; 1: no server answers."""
    from holdfast.cli.status import run

    run(server, as_json=as_json)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Folder to create; must not exist.")],
    server: Server = DEFAULT_SERVER,
) -> None:
    """Back up the data folder of a running server as of one moment. Run it on the server's machine."""
    from holdfast.cli.backup import backup

    backup(target, server)


@app.command()
def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="A folder made by holdfast backup.")],
    data_dir: Annotated[Path | None, typer.Option(help="Data folder to create; default: that of the service.")] = None,
    config: ConfigFile = None,
) -> None:
    """Restore a backup into a new data folder for holdfast start."""
    from holdfast.cli.backup import restore

    restore(backup, data_dir, config)


@app.command()
def datagen(
    sample: Annotated[str, typer.Argument(help="orders, users, pageviews or trades.")],
    topic: Annotated[str | None, typer.Option(help="Topic to write to; default: the sample's name.")] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the topic, if it is created.")] = 4,
    rate: Annotated[float, typer.Option(min=0, help="Records per second; 0 is as fast as possible.")] = 10.0,
    count: Annotated[
        int | None, typer.Option(min=0, help="Stop after this many records; default: run until Ctrl-C.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed: the same seed gives the same records.")] = 1,
    start: Annotated[
        str | None, typer.Option(metavar="TIME", help="Timestamp of the first record; default: now.")
    ] = None,
    declare: Annotated[
        bool, typer.Option("--declare", help="Only print the statement that declares the stream or table.")
    ] = False,
    kafka: Annotated[str | None, typer.Option(help="Bootstrap servers; default: the local server's broker.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="The data folder of the local server.")] = None,
    service_id: Annotated[str | None, typer.Option(help="The local server's service id.")] = None,
    config: ConfigFile = None,
) -> None:
    """Write sample records to a topic: orders, users, page views or trades."""
    from holdfast.cli.datagen import run

    run(
        sample,
        topic=topic,
        partitions=partitions,
        rate=rate,
        count=count,
        seed=seed,
        start=start,
        declare=declare,
        flags={"kafka": kafka, "data_dir": data_dir, "service_id": service_id},
        config=config,
    )


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"holdfast {VERSION}")


def main() -> None:
    app()
