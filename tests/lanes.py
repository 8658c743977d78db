"""`make test` runs lanes side by side, each a process with its own Spark and broker, started when a test needs them.

A lane takes a file at a time, the slowest first: a long file that started last would leave the other lane idle.
"""

import atexit
import os

import pytest
from xdist.scheduler import LoadFileScheduling

SLOWEST = (
    "tests/e2e/test_crashes.py",
    "tests/e2e/test_servers.py",
    "tests/test_queries.py",
    "tests/e2e/test_backup.py",
    "tests/conformance/",
    "tests/e2e/",
    "tests/runtime/",
    "tests/coordinator/",
    "tests/kafka/",
)
"""These start first, in this order: a long file that started last would leave the other lanes idle."""
APART = ("tests/e2e/test_crashes.py", "tests/e2e/test_backup.py")
"""Files whose tests take minutes each: lanes take them one at a time."""

OUTCOMES = ("passed", "xpassed", "failed", "error", "skipped", "xfailed")


class Lanes(LoadFileScheduling):
    """Schedules tests by file."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(APART) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Lanes:
    config.option.loadscopereorder = False
    return Lanes(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests for the lanes; a run without lanes keeps pytest's order."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid))


def rank(nodeid: str) -> int:
    return next((position for position, folder in enumerate(SLOWEST) if nodeid.startswith(folder)), len(SLOWEST))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many tests are skipped because the conformance data is missing."""
    reports = terminalreporter.stats.get("skipped", [])
    without = [report for report in reports if "conformance data" in str(report.longrepr)]
    if without:
        terminalreporter.write_line(
            f"{len(without)} tests skipped: the conformance data is missing; set HOLDFAST_CONFORMANCE_DIR to its folder"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End a run with one plain line of counts over all lanes."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not config.getoption("numprocesses", None):
        return
    counts = {outcome: len(reporter.stats.get(outcome, ())) for outcome in OUTCOMES}
    failed, skipped = counts["failed"] + counts["error"], counts["skipped"] + counts["xfailed"]
    print(f"{counts['passed'] + counts['xpassed']} passed, {failed} failed, {skipped} skipped", flush=True)


@atexit.register
def _end_without_leak_report() -> None:
    """Make pytest's lines the last output.

    DuckDB's binding reports its module's own constants and functions as leaks when the interpreter ends after
    hypothesis and pytest's rewritten assertions have run, with no connection open. Nothing else is written after that.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
