"""Which queries there are, what they read from each other, and in which order their stages run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.program import Program


@dataclass
class Dataflow:
    """The programs of a cluster. A table is kept by one program, a derived stream by all that write to it.

    A stream over a topic that others write is kept by none, also when programs write there: its rows come by the topic.
    """

    programs: dict[QueryId, Program] = field(default_factory=dict)
    topics: dict[ObjectName, TopicName | None] = field(default_factory=dict)
    """The objects that there are, with their topics; a materialized view has none."""
    kept: set[ObjectName] = field(default_factory=set)

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        """The kept object of a topic among the names that a plan reads, as `build` asks for it."""
        for name in names:
            if self.topics.get(name) == topic and self.keeper(name) is not None:
                return name
        return None

    def keeps(self, name: ObjectName) -> bool:
        return self.keeper(name) is not None

    def is_over_topic(self, topic: TopicName, names: Sequence[ObjectName]) -> bool:
        """Whether the kept object of a topic is a table over the topic itself: what keeps it writes nowhere."""
        name = self.object_of(topic, names)
        keeper = None if name is None else self.keeper(name)
        return keeper is not None and topic in keeper.topics

    def declare(self, name: ObjectName, topic: TopicName | None, *, kept: bool) -> None:
        self.topics[name] = topic
        if kept:
            self.kept.add(name)
        else:
            self.kept.discard(name)

    def forget(self, name: ObjectName) -> None:
        self.topics.pop(name, None)
        self.kept.discard(name)

    def add(self, program: Program) -> None:
        self.programs[program.query] = program

    def remove(self, query: QueryId) -> Program | None:
        return self.programs.pop(query, None)

    def keepers(self, name: ObjectName) -> list[Program]:
        """The programs that keep an object."""
        return [p for p in self.programs.values() if p.object == name] if name in self.kept else []

    def keeper(self, name: ObjectName) -> Program | None:
        """The program that keeps a table, or the first of those that keep a stream."""
        return next(iter(self.keepers(name)), None)

    def readers(self, name: ObjectName) -> list[Program]:
        """The programs that an object's rows drive."""
        return [p for p in self.programs.values() if name in p.objects]

    def downstream(self, program: Program, among: Mapping[QueryId, Program]) -> dict[QueryId, Program]:
        """Those of some programs that a program's rows reach."""
        found: dict[QueryId, Program] = {}
        for reader in self.readers(program.object):
            if reader.query in among and reader.query not in found:
                found |= {reader.query: reader} | self.downstream(reader, among)
        return found

    def askers(self, name: ObjectName) -> list[Program]:
        """The programs that need an object, driven by it or not."""
        return [p for p in self.programs.values() if name in p.needs]

    def depth(self, program: Program) -> int:
        """How many rounds come before a program's first stage."""
        upstream = [keeper for name in program.needs for keeper in self.keepers(name)]
        return max((self.depth(keeper) + keeper.rounds for keeper in upstream), default=0)

    def rounds(self, queries: Mapping[QueryId, Program]) -> Iterator[list[tuple[Program, int]]]:
        """The stages of some queries, upstream before downstream: all stages of a depth are one round."""
        levels: dict[int, list[tuple[Program, int]]] = {}
        for program in queries.values():
            first = self.depth(program)
            for index, stage in enumerate(program.stages):
                levels.setdefault(first + stage.round, []).append((program, index))
        for level in sorted(levels):
            yield levels[level]
