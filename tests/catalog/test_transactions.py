"""A transaction is one record of the command topic: all of its commands are applied, or none."""

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.catalog.commands import Command, CommandId, decode_command, encode_command
from holdfast.catalog.fold import apply, fold
from holdfast.catalog.objects import QueryState
from holdfast.names import StoreId
from holdfast.planner.commands import replan

from .test_fold import COMMANDS, UNREADABLE, command, create

TEXT = "BEGIN; CREATE …; CREATE HOLD ON …; COMMIT;"


def transaction(*parts: Command, offset: int = 9) -> Command:
    return Command(id=CommandId("transaction", "X", "execute"), statement=TEXT, parts=parts, offset=offset)


@given(st.lists(COMMANDS), st.lists(COMMANDS, min_size=1))
def test_a_transaction_does_what_its_commands_do(before, parts):
    key, value = encode_command(transaction(*parts))
    assert apply(fold(before), decode_command(key, value)) == fold([*before, *parts])


@given(st.lists(COMMANDS), st.lists(COMMANDS), UNREADABLE, st.lists(COMMANDS))
def test_when_one_command_cannot_be_read_none_is_applied(before, first, bad, rest):
    catalog = fold(before)
    after = apply(catalog, transaction(*first, bad, *rest))
    entry = after.queries["COMMAND_9"]
    assert (entry.state, entry.statement) == (QueryState.INCOMPATIBLE, TEXT)
    assert entry.reason
    assert after.without_query(entry.id) == catalog


def test_a_transaction_is_json_with_its_commands_inside():
    made = Command(
        id=CommandId("transaction", "A", "execute"),
        statement=TEXT,
        parts=(
            command(create("A"), "stream/A/create"),
            command(None, "hold/H/create", properties={"holdfast.hold.id": "h1"}),
        ),
        store_id=StoreId("s-1"),
    )
    key, value = encode_command(made)
    assert key == b"transaction/A/execute"
    assert json.loads(value) == {
        "statement": TEXT,
        "plan": None,
        "properties": {},
        "commands": [
            {"id": "stream/A/create", "statement": "…", "plan": create("A"), "properties": {}},
            {"id": "hold/H/create", "statement": "…", "plan": None, "properties": {"holdfast.hold.id": "h1"}},
        ],
        "release": "0.1.0",
        "storeId": "s-1",
    }
    assert decode_command(key, value) == made


def test_a_release_that_knows_no_transactions_keeps_it_and_does_nothing_of_it():
    """To such a release it is a command of an unknown type without a plan, whose text is not one statement."""
    statement = "BEGIN; DROP HOLD h; ALTER HOLD g RENAME TO h; COMMIT;"
    unknown = Command(id=CommandId("later", "H", "execute"), statement=statement, offset=4)
    after = fold([unknown], replan=replan)
    assert after.queries["COMMAND_4"].reason == "the command has no plan, and its text is not a single statement"
    assert (dict(after.objects), dict(after.holds)) == ({}, {})


def test_a_transaction_that_is_broken_is_kept_with_the_reason():
    for inner in ([], [7], [{"statement": "x"}], [{"id": "hold/H/drop"}], "x"):
        value = json.dumps({"statement": TEXT, "plan": None, "commands": inner}).encode()
        entry = apply(fold([]), decode_command(b"transaction/X/execute", value, offset=2)).queries["COMMAND_2"]
        assert entry.state is QueryState.INCOMPATIBLE
        assert entry.reason
