"""Which queries there are, what they read from each other, and in which order their stages run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.program import Program


@dataclass
class Dataflow:
    """The programs of a cluster. An object is kept by at most one program; a stream over a topic by none."""

    programs: dict[QueryId, Program] = field(default_factory=dict)
    topics: dict[ObjectName, TopicName] = field(default_factory=dict)

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        """The kept object of a topic among the names that a plan reads, as `build` asks for it."""
        for name in names:
            if self.topics.get(name) == topic and self.keeper(name) is not None:
                return name
        return None

    def declare(self, name: ObjectName, topic: TopicName) -> None:
        self.topics[name] = topic

    def forget(self, name: ObjectName) -> None:
        self.topics.pop(name, None)

    def add(self, program: Program) -> None:
        self.programs[program.query] = program

    def remove(self, query: QueryId) -> Program | None:
        return self.programs.pop(query, None)

    def keeper(self, name: ObjectName) -> Program | None:
        """The program that keeps an object."""
        return next((p for p in self.programs.values() if p.object == name), None)

    def readers(self, name: ObjectName) -> list[Program]:
        """The programs that an object's rows drive."""
        return [p for p in self.programs.values() if name in p.objects]

    def askers(self, name: ObjectName) -> list[Program]:
        """The programs that need an object, driven by it or not."""
        return [p for p in self.programs.values() if name in p.needs]

    def depth(self, program: Program) -> int:
        """How many rounds come before a program's first stage."""
        upstream = [keeper for name in program.needs if (keeper := self.keeper(name)) is not None]
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
