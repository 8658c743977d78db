"""Which statements go together in a transaction, and the one command that they become."""

import pytest

from holdfast.catalog.commands import decode_command, encode_command
from holdfast.catalog.fold import apply
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import DuplicateObject, HoldfastError, NotInTransaction, UnknownObject
from holdfast.planner.commands import commands_for
from holdfast.planner.draft import MAX_STATEMENTS, Draft
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');
CREATE HOLD a ON t; CREATE HOLD b ON t; CREATE HOLD c ON t;
"""


def catalog_of(text: str) -> Catalog:
    catalog = EMPTY
    for number, parsed in enumerate(parse(text)):
        for command in commands_for(bind(parsed.statement, catalog, {}), text=parsed.text, number=number):
            catalog = apply(catalog, command)
    return catalog


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(SETUP)


def drafted(text: str, catalog: Catalog) -> Draft:
    draft = Draft()
    for parsed in parse(text):
        draft, _ = draft.adding(parsed, {}, catalog)
    return draft


def committed(text: str, catalog: Catalog) -> Catalog:
    """The catalog as the command topic gives it back."""
    draft = drafted(text, catalog)
    draft.check_whole()
    planned = draft.planned(catalog, number=50)
    after = apply(catalog, decode_command(*encode_command(draft.command(planned, None)), offset=50))
    assert after == planned.after
    return after


def ids(catalog: Catalog) -> dict[str, str]:
    return {str(hold.name): str(hold.id) for hold in catalog.holds.values()}


def refusal(text: str, catalog: Catalog) -> str:
    with pytest.raises(NotInTransaction) as raised:
        drafted(text, catalog).check_whole()
    return str(raised.value)


def test_holds_can_be_renamed_in_a_transaction(catalog):
    was = ids(catalog)
    swapped = committed("ALTER HOLD a RENAME TO x; ALTER HOLD b RENAME TO a; ALTER HOLD x RENAME TO b;", catalog)
    assert ids(swapped) == {"A": was["B"], "B": was["A"], "C": was["C"]}


def test_a_hold_is_swapped_by_dropping_it_and_renaming_another(catalog):
    was = ids(catalog)
    swapped = committed("DROP HOLD a; ALTER HOLD b RENAME TO a;", catalog)
    assert ids(swapped) == {"A": was["B"], "C": was["C"]}


def test_it_is_one_command_with_all_statements(catalog):
    draft = drafted("DROP HOLD a; DROP HOLD IF EXISTS nothing; ALTER HOLD b RENAME TO a;", catalog)
    command = draft.command(draft.planned(catalog, number=7), None)
    assert str(command.id) == "transaction/A/execute"
    assert command.statement == ("BEGIN; DROP HOLD a; DROP HOLD IF EXISTS nothing; ALTER HOLD b RENAME TO a; COMMIT;")
    assert [str(part.id) for part in command.parts] == ["hold/A/drop", "hold/B/alter"]


def test_a_statement_is_bound_after_those_before_it(catalog):
    with pytest.raises(UnknownObject):
        drafted("ALTER HOLD a RENAME TO x; ALTER HOLD a RENAME TO y;", catalog)
    with pytest.raises(DuplicateObject):
        drafted("ALTER HOLD a RENAME TO b;", catalog)


def test_what_others_did_meanwhile_is_seen_on_commit(catalog):
    draft = drafted("ALTER HOLD a RENAME TO x;", catalog)
    later = catalog.without_holds(catalog.hold("A"))
    with pytest.raises(UnknownObject):
        draft.planned(later, number=1)


def test_a_draft_does_not_grow_without_end(catalog):
    (parsed,) = parse("DROP HOLD IF EXISTS nothing;")
    draft = Draft()
    full = drafted("DROP HOLD IF EXISTS nothing;", catalog).statements * MAX_STATEMENTS
    object.__setattr__(draft, "statements", full)
    with pytest.raises(HoldfastError, match="a transaction can have at most 1000 statements"):
        draft.adding(parsed, {}, catalog)


MAY = (
    "DETAIL: A transaction can read, or create one index or materialized view and a hold on it, or rename and drop"
    " holds."
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE TABLE u AS SELECT * FROM t;", "CREATE TABLE"),
        ("CREATE STREAM s (n INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON');", "CREATE STREAM"),
        ("CREATE VIEW v AS SELECT * FROM t;", "CREATE VIEW"),
        ("DROP TABLE t CASCADE;", "DROP TABLE"),
        ("ALTER TABLE t ADD COLUMN m INT;", "ALTER TABLE"),
        ("INSERT INTO t (id, n) VALUES ('a', 1);", "INSERT INTO"),
        ("TERMINATE ALL;", "TERMINATE ALL"),
        ("PAUSE ALL;", "PAUSE ALL"),
    ],
)
def test_what_cannot_be_in_a_transaction(catalog, text, words):
    assert refusal(text, catalog).splitlines() == [
        f"{words} cannot be run in a transaction at line 1, column 1",
        MAY,
    ]


VIEW = "CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t WHERE n > 1;"


@pytest.mark.parametrize("name", ["h", ""])
def test_an_object_is_created_together_with_a_hold_on_it(catalog, name):
    after = committed(f"{VIEW} CREATE HOLD {name} ON v WITH (MAX LAG = '1h');", catalog)
    (hold,) = after.holds_on("V")
    assert (hold.name, hold.id, hold.on, hold.max_lag_ms) == (name.upper() or "V_HOLD", "h50", ("V",), 3_600_000)
    made = after.object("V")
    assert after.queries[made.query].sources == ("T",)


@pytest.mark.parametrize(("create", "name"), [("CREATE INDEX i ON t (n);", "I"), ("CREATE INDEX ON t (n);", "T_N_IDX")])
def test_an_index_is_created_together_with_a_hold_on_it(catalog, create, name):
    after = committed(f"{create} CREATE HOLD ON {name};", catalog)
    (hold,) = after.holds_on(name)
    assert (hold.name, hold.on) == (f"{name}_HOLD", (name,))
    with pytest.raises(NotInTransaction, match=f'must be only on "{name}", which it creates'):
        drafted(f"{create} CREATE HOLD ON t;", catalog)


def test_a_hold_without_a_name_gets_one_that_is_free(catalog):
    taken = committed(f"{VIEW} CREATE HOLD ON v;", catalog).without_object("V")
    assert set(committed(f"{VIEW} CREATE HOLD ON v;", taken).holds) - set(taken.holds) == {"V_HOLD_2"}


ELSEWHERE = 'the hold of a transaction must be only on "V", which it creates'


@pytest.mark.parametrize(
    ("text", "refusal_"),
    [
        (
            f"{VIEW} CREATE HOLD h ON t;",
            ELSEWHERE,
        ),
        (
            f"{VIEW} CREATE HOLD ON v, t;",
            ELSEWHERE,
        ),
        (f"{VIEW} CREATE HOLD ON v; CREATE HOLD g ON v;", "only one CREATE HOLD is allowed per transaction"),
        (f"{VIEW} CREATE HOLD ON v; DROP HOLD a;", 'a transaction that creates "V" can only create a hold on it'),
        (f"{VIEW} ALTER HOLD a RENAME TO d;", 'a transaction that creates "V" can only create a hold on it'),
        (f"{VIEW} {VIEW}", 'a transaction can create only one object, and this one creates "V"'),
        (f"DROP HOLD a; {VIEW}", "a transaction that renames or drops holds cannot create objects"),
        (VIEW.replace("CREATE", "CREATE OR REPLACE"), "CREATE OR REPLACE cannot be run in a transaction"),
        (VIEW, 'the transaction creates "V" without a hold on it'),
    ],
)
def test_what_does_not_go_together(catalog, text, refusal_):
    assert refusal(text, catalog).splitlines()[0].partition(" at line ")[0] == refusal_


def test_what_exists_already_is_not_created(catalog):
    exists = committed(f"{VIEW} CREATE HOLD ON v;", catalog)
    raised = refusal(f"{VIEW.replace('VIEW v', 'VIEW IF NOT EXISTS v')} CREATE HOLD ON v;", exists)
    assert raised.endswith("so this transaction would create nothing")


def test_a_hold_is_moved_outside_of_transactions(catalog):
    assert refusal("ALTER HOLD a ADVANCE;", catalog).splitlines() == [
        "ALTER HOLD … ADVANCE cannot be run in a transaction at line 1, column 1",
        "DETAIL: Advancing a hold takes effect immediately and cannot be undone.",
        "HINT: Advance it outside a transaction.",
    ]


@pytest.mark.parametrize("before", ["", "DROP HOLD a; "])
def test_a_hold_is_created_after_what_it_holds(catalog, before):
    assert refusal(f"{before}CREATE HOLD h ON t;", catalog).splitlines() == [
        f"CREATE HOLD in a transaction must follow the CREATE of its object at line 1, column {len(before) + 1}",
        "HINT: Create the hold outside a transaction.",
    ]


def test_an_index_is_created_with_a_hold_on_it(catalog: Catalog):
    after = committed("CREATE INDEX ON t (n); CREATE HOLD ON t_n_idx;", catalog)
    assert after.index("T_N_IDX").on == "T"
    assert after.hold("T_N_IDX_HOLD").on == ("T_N_IDX",)
    draft = drafted("CREATE INDEX ON t (n); CREATE HOLD ON t_n_idx;", catalog)
    assert draft.planned(catalog, number=50).inputs == ("T",)
    with pytest.raises(NotInTransaction, match="can create only one object"):
        drafted("CREATE INDEX ON t (n); CREATE INDEX ON t (id);", catalog)
    with pytest.raises(NotInTransaction, match="without a hold on it"):
        drafted("CREATE INDEX ON t (n);", catalog).check_whole()
