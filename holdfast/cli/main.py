"""The `holdfast` command."""

from importlib.metadata import version as package_version
from pathlib import Path
from typing import Annotated

import typer

from holdfast.config import DEFAULT_SERVER

app = typer.Typer(
    help="A streaming SQL database for Kafka.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Server = Annotated[str, typer.Option("--server", metavar="URL", help="The server to ask.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="A TOML file of settings.")]


@app.command()
def start(
    kafka: Annotated[str | None, typer.Option(help="Bootstrap servers; without it, a broker is started.")] = None,
    spark_master: Annotated[str | None, typer.Option(help="Where Spark runs: local[*], spark://host:7077, …")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="The folder of the store, the broker's data and logs.")] = None,
    service_id: Annotated[str | None, typer.Option(help="Names the service's internal topics.")] = None,
    http_host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    http_port: Annotated[int | None, typer.Option(help="The port to listen on; 0 chooses one.")] = None,
    broker_port: Annotated[int | None, typer.Option(help="The port of the started broker; 0 chooses one.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Give up the store and build it again.")] = False,
    republish: Annotated[
        bool, typer.Option("--republish", help="Go on with an older store: its later rows are written again.")
    ] = False,
    config: ConfigFile = None,
    setting: Annotated[
        list[str] | None, typer.Option("-s", "--set", metavar="NAME=VALUE", help="Any other setting.")
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
        "http_port": http_port,
        "broker_port": broker_port,
        "rebuild": rebuild or None,
        "republish": republish or None,
    }
    run(flags, setting or (), config)


@app.command()
def sql(
    execute: Annotated[str | None, typer.Option("-e", "--execute", metavar="SQL", help="Statements to run.")] = None,
    file: Annotated[Path | None, typer.Option("-f", "--file", help="A file of statements to run.")] = None,
    server: Server = DEFAULT_SERVER,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORM", help="The form of the output: table, json or csv.")
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
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Files of tests, or folders of them.")],
    plans: Annotated[bool, typer.Option("--plans", help="The files have recorded plans, one per line.")] = False,
    only: Annotated[str | None, typer.Option(metavar="PATTERN", help="Only tests with this in their name.")] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write a report for machines.")] = None,
    config: ConfigFile = None,
) -> None:
    """Run query tests, without a server and without Kafka."""
    from holdfast.cli.test import run

    run(paths, plans=plans, only=only, json=json, config=config)


@app.command()
def jars(
    archive: Annotated[
        bool, typer.Option("--archive", help="Also archive the classes in them, for faster starts.")
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Fetch the jars that Spark and the broker need; says nothing when they are there."""
    from holdfast.cli.jars import run

    run(config, archive=archive)


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="How long the live table is shown.")] = 10.0,
) -> None:
    """Show all of it in a minute: a broker, Spark, a stream, a table that changes. Leaves nothing behind."""
    from holdfast.cli.demo import run

    run(seconds)


@app.command()
def status(
    server: Server = DEFAULT_SERVER,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Say how a server and its queries are. Exit code 0: all is well; 2: something is not; 1: no server answers."""
    from holdfast.cli.status import run

    run(server, as_json=as_json)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The folder to make; it must not exist.")],
    server: Server = DEFAULT_SERVER,
) -> None:
    """Back up the data folder of a server that runs, as of one moment. Run it on the server's machine."""
    from holdfast.cli.backup import backup

    backup(target, server)


@app.command()
def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="A folder that holdfast backup has made.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="The data folder to make; the service's own if not told.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Make a data folder of a backup, for holdfast start to run in."""
    from holdfast.cli.backup import restore

    restore(backup, data_dir, config)


@app.command()
def datagen(
    sample: Annotated[str, typer.Argument(help="orders, users, pageviews or trades.")],
    topic: Annotated[str | None, typer.Option(help="The topic to write; the sample's name if not told.")] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Of the topic, when it has to be made.")] = 4,
    rate: Annotated[float, typer.Option(min=0, help="Records a second; 0 is as fast as Kafka takes them.")] = 10.0,
    count: Annotated[int | None, typer.Option(min=0, help="Stop after so many; without it, Ctrl-C stops.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same records.")] = 1,
    start: Annotated[
        str | None, typer.Option(metavar="TIME", help="Give the records times from here on, instead of the present.")
    ] = None,
    declare: Annotated[
        bool, typer.Option("--declare", help="Only print the statement that declares the topic.")
    ] = False,
    kafka: Annotated[str | None, typer.Option(help="Bootstrap servers; without it, the local server's broker.")] = None,
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
    typer.echo(f"holdfast {package_version('holdfast')}")


def main() -> None:
    app()
