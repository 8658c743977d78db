"""What the programs of a cluster read from each other. Nothing of it may grow with the square of their number."""

import pyarrow as pa

from holdfast.names import ObjectName, QueryId
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.fragment import Fragment
from holdfast.runtime.program import Emit, ObjectInput, Program, Stage
from holdfast.runtime.store.port import Layout
from holdfast.types import Schema


def program(name: str, *reads: str) -> Program:
    inputs = tuple(ObjectInput(ObjectName(read), read, pa.schema([])) for read in reads)
    stage = Stage(inputs, Fragment("SELECT 1", ()), Emit())
    return Program(QueryId(f"Q_{name}"), ObjectName(name), Schema(()), (stage,), None, None, Layout((), ()), ())


def dataflow(*programs: Program) -> Dataflow:
    found = Dataflow()
    for each in programs:
        found.declare(each.object, None, maintained=True)
        found.add(each)
    return found


def names(programs) -> list[str]:
    return [each.object for each in programs]


def test_what_is_known_follows_every_change():
    a, b, c = program("A"), program("B", "A"), program("C", "B", "A")
    flow = dataflow(a, b)
    assert names(flow.readers(ObjectName("A"))) == ["B"]
    assert flow.depth(b) == 1
    flow.declare(ObjectName("C"), None, maintained=True)
    flow.add(c)
    assert names(flow.readers(ObjectName("A"))) == names(flow.dependents(ObjectName("A"))) == ["B", "C"]
    assert flow.depth(c) == 2
    assert list(flow.downstream(a, flow.programs)) == ["Q_B", "Q_C"]
    flow.remove(b.query)
    assert flow.depth(c) == 1
    assert flow.maintainer(ObjectName("B")) is None
    flow.forget(ObjectName("A"))
    assert flow.depth(c) == 0


def test_depths_of_many_diamonds_are_computed_once_each():
    """Two ways from each level to the next: 2 to the power of 60 paths."""
    programs = [program("0")]
    for level in range(60):
        programs += [program(f"{level}L", f"{level}"), program(f"{level}R", f"{level}")]
        programs.append(program(f"{level + 1}", f"{level}L", f"{level}R"))
    flow = dataflow(*programs)
    assert flow.depth(programs[-1]) == 120
    assert [len(round_) for round_ in flow.rounds(flow.programs)] == [1, *[2, 1] * 60]
    assert len(flow.downstream(programs[0], flow.programs)) == 180
