"""The physical columns of rows in a tick, with the same names in Arrow tables, Spark SQL and the store.

| column | what it holds | written by |
|---|---|---|
| `k0`, `k1`, … | the key columns; for a windowed key, the last two are the window's start and end | `key(i)` |
| `c0`, `c1`, … | the value columns | `value(i)` |
| `b0`, … and `a0`, … | in a delta, the value columns before and after the tick | `Side.column(i)` |
| `b_present`, `a_present` | in a delta, whether the key has a row before and after the tick | `Side.present` |
| `b_ts`, `a_ts` | in a delta, the row times before and after the tick | `Side.row_time` |
| `p0`, … and `s0`, … | partial aggregates, and the state that they merge into | `partial(i)`, `state(i)` |
| `ts` | ROWTIME, in milliseconds | `ROW_TIME` |
| `present` | false for a deleted row, or a record without a value | `PRESENT` |
| `part`, `off` | the record's partition and offset; a derived row's order in the tick | `PARTITION`, `OFFSET` |
| `hdr` | the headers of the record | `HEADERS` |
| `tombstone` | in decoded records, whether the record has no value | `TOMBSTONE` |
| `bad` | 0 for a good row, otherwise why it is skipped | `BAD` |
| `skipped` | how many rows a bad row represents | `SKIPPED` |
| `late` | how many rows were too late for their window | `LATE` |

SQL names can be any text, so physical columns are named by position. The SQL in builders spells the fixed names out;
numbered names come from the functions here.
"""

from enum import Enum

ROW_TIME = "ts"
PRESENT = "present"
PARTITION = "part"
OFFSET = "off"
HEADERS = "hdr"
TOMBSTONE = "tombstone"
BAD = "bad"
SKIPPED = "skipped"
LATE = "late"


def key(index: int) -> str:
    return f"k{index}"


def value(index: int) -> str:
    return f"c{index}"


def partial(index: int) -> str:
    return f"p{index}"


def state(index: int) -> str:
    return f"s{index}"


def keys(count: int) -> list[str]:
    return [key(i) for i in range(count)]


def values(count: int) -> list[str]:
    return [value(i) for i in range(count)]


class Side(Enum):
    """A side of a delta: the row before or after the tick."""

    BEFORE = "b"
    AFTER = "a"

    def column(self, index: int) -> str:
        """A value column on this side."""
        return f"{self.value}{index}"

    @property
    def present(self) -> str:
        return f"{self.value}_present"

    @property
    def row_time(self) -> str:
        return f"{self.value}_ts"


BEFORE, AFTER = Side.BEFORE, Side.AFTER
