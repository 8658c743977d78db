"""The shell in a pseudo-terminal, against a server."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.server.http.server import listen, running
from holdfast.service.status import QueryInfo
from tests.cli.screen import Program
from tests.server.local import LocalService


class Building:
    """How far the service says that its queries have come; None is all the way."""

    def __init__(self, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: float | None = None
        self._queries = service.queries
        monkeypatch.setattr(service, "queries", self.queries)

    def queries(self) -> list[QueryInfo]:
        found = self._queries()
        if self.done is None:
            return found
        return [replace(query, state="BUILDING", done=self.done) for query in found]


@pytest.fixture
def start(url: str, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []

    def started(**more: int) -> Program:
        programs.append(Program("sql", "--server", url, state=tmp_path, **more))
        programs[-1].until_prompt()
        return programs[-1]

    yield started
    for program in programs:
        program.close()


def test_a_statement_over_several_lines_is_run_at_its_end(start, service: LocalService) -> None:
    service.put("TOTALS", ("b", 14))
    shell = start()
    shell.type("SELECT id,", "enter", "  total -- ; not here", "enter", "FROM totals;", "enter")
    screen = shell.until("(2 rows in")
    assert screen[1:7] == [
        "holdfast> SELECT id,",
        "      ...   total -- ; not here",
        "      ...   FROM totals;",
        "ID | TOTAL",
        "---+------",
        "a  |     3",
    ]
    assert b"\x1b[1mID | TOTAL" in shell.raw, "headings are bold on a terminal"


def test_tables_fit_the_terminal(start, service: LocalService) -> None:
    service.put("TOTALS", ("a",), ("word " * 30, 1), ("x", 2))
    screen = start(columns=40).type("SELECT id, total FROM totals;", "enter").until("(2 rows in")
    _, _, first, second, *_ = screen[screen.index("ID                               | TOTAL") :]
    assert first == "word word word word word word    |     1"
    assert second == "word word word word word word    |"


def test_tab_completes_what_the_grammar_allows_and_the_catalog_has(start, service: LocalService) -> None:
    shell = start()
    shell.type("sel", "tab").until("holdfast> select")
    shell.type(" tot", "tab").until("holdfast> select total")
    shell.type(" from tota", "tab").until("from totals")
    shell.type(" emi", "tab", " ch", "tab").until("holdfast> select total from totals emit changes")
    shell.type(";", "enter")
    service.next_push()
    service.put("TOTALS", ("b", 47110815))
    shell.until("47110815")
    shell.type("ctrl-c").until("(1 row in")


def test_ctrl_c_ends_a_push_query_and_not_the_shell(start, service: LocalService) -> None:
    shell = start()
    shell.type("SELECT id, total FROM totals EMIT CHANGES;", "enter")
    push = service.next_push()
    service.put("TOTALS", ("a", 1))
    shell.until("a                 ")
    service.put("TOTALS", ("a",))
    shell.until("<TOMBSTONE>")
    assert service.find_push(push.id) is push
    shell.type("ctrl-c").until("(2 rows in")
    assert service.has_closed(push, 5)
    shell.until_prompt()
    shell.type("SHOW STREAMS;", "enter").until("ORDERS         | orders ")


def test_an_error_shows_its_place_and_the_shell_goes_on(start) -> None:
    shell = start()
    screen = shell.type("SELECT id,", "enter", "idd FROM totals;", "enter").until("HINT")
    assert screen[3:7] == [
        'ERROR: column "IDD" does not exist in "TOTALS"',
        "LINE 2: idd FROM totals;",
        "        ^",
        'HINT: Did you mean "ID"?',
    ]
    shell.type("SHOW TABLES;", "enter").until("TOTALS | TOTALS")


def test_what_was_typed_is_there_the_next_time(start, tmp_path: Path) -> None:
    first = start()
    first.type("SHOW", "enter", "STREAMS;", "enter").until("ORDERS         | orders ")
    assert first.type("\\q", "enter").ended() == 0
    history = tmp_path / "holdfast" / "history"
    assert history.stat().st_mode & 0o077 == 0
    second = start()
    second.type("up", "up").until("holdfast> SHOW", "... STREAMS;")
    second.type("enter").until("ORDERS         | orders ")


def test_leaving(start) -> None:
    assert start().type("exit", "enter").ended() == 0
    assert start().type("ctrl-d").ended() == 0
    shell = start()
    shell.type("SELECT nothing", "ctrl-c").until_prompt()
    assert shell.type("quit;", "enter").ended() == 0


def test_scripts_spools_and_outputs(start, service: LocalService, tmp_path: Path) -> None:
    script, spool = tmp_path / "it's.sql", tmp_path / "copy.txt"
    script.write_text("INSERT INTO orders VALUES ('b', 1);\nSELECT idd FROM totals;\nDROP TABLE totals;\n")
    shell = start(columns=200)
    shell.type(f"spool '{spool}';", "enter").until("Copying output to")
    written = str(script).replace("'", "''")
    shell.type(f"run script '{written}'", "enter")
    screen = shell.until("CONTEXT: ", "it's.sql.")
    assert "1 row inserted." in screen
    assert (
        next(line for line in screen if line.startswith("CONTEXT"))
        == f"CONTEXT: statement 2, starting at line 2 of {script}."
    )
    assert service.catalog.find("TOTALS") is not None
    shell.type("output json", "enter").until_prompt()
    shell.type("SELECT id, total FROM totals;", "enter").until('{"ID":"a","TOTAL":3}')
    shell.type("SPOOL OFF;", "enter").until_prompt()
    shell.type("output xml;", "enter").until('unknown output format "xml"')
    copied = spool.read_text().splitlines()
    assert 'ERROR: column "IDD" does not exist in "TOTALS"' in copied
    assert '{"ID":"a","TOTAL":3}' in copied
    assert "holdfast> SELECT id, total FROM totals;" in copied
    assert "\x1b" not in spool.read_text()
    assert not any("xml" in line for line in copied)


def test_a_bar_shows_how_far_a_new_query_has_come(
    start, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    building = Building(service, monkeypatch)
    shell = start()
    building.done = 0.25
    shell.type("CREATE TABLE again AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id;", "enter")
    shell.until("backfilling CTAS_AGAIN_5", "25 %")
    building.done = 0.5
    shell.until("50 %")
    building.done = None
    screen = shell.until_prompt()
    assert not any("backfilling" in line for line in screen), "the bar goes when it is done"
    building.done = 0.5
    shell.type("CREATE TABLE third AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id;", "enter")
    shell.until("backfilling CTAS_THIRD_7")
    shell.type("ctrl-c").until("is still catching up")


def test_help_is_that_of_the_grammar(start) -> None:
    shell = start(lines=120)
    shell.type("\\?", "enter").until("RUN SCRIPT 'file'", "INSERT INTO … VALUES", "EXPLAIN")
    shell.type("help drop table", "enter").until("DROP {STREAM | TABLE} [IF EXISTS] name [DELETE TOPIC]")
    shell.type("help nonsense;", "enter").until("No statement begins with NONSENSE")


def test_the_shell_reports_a_lost_server_and_stays(service: LocalService, tmp_path: Path) -> None:
    with running(service, listen(service.settings)) as server:
        shell = Program("sql", "--server", server.url, state=tmp_path)
        shell.until_prompt()
    shell.type("SHOW STREAMS;", "enter").until("ERROR: cannot reach a server at")
    shell.until_prompt()
    shell.close()
