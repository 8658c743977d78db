"""The running programs: what they read from each other, and in which order their stages run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.program import Program


@dataclass
class Dataflow:
    """The programs of a cluster. A table is maintained by one program, a derived stream by all that write to it.

    A stream declared over an existing topic is not maintained, even if programs write to that topic: its rows are
    read from the topic.
    """

    programs: dict[QueryId, Program] = field(default_factory=dict)
    topics: dict[ObjectName, TopicName | None] = field(default_factory=dict)
    """The declared objects and their topics; a materialized view has none."""
    maintained: set[ObjectName] = field(default_factory=set)
    _graph: "_Graph | None" = field(default=None, init=False, repr=False)
    """What follows from the programs; computed when it is needed after a change."""

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        """The maintained object of a topic, among the names that a plan reads."""
        for name in names:
            if self.topics.get(name) == topic and self.is_maintained(name):
                return name
        return None

    def is_maintained(self, name: ObjectName) -> bool:
        return self.maintainer(name) is not None

    def is_over_topic(self, topic: TopicName, names: Sequence[ObjectName]) -> bool:
        """Whether the maintained object of a topic is a table read from that topic: its program writes to no topic."""
        name = self.object_of(topic, names)
        maintainer = None if name is None else self.maintainer(name)
        return maintainer is not None and topic in maintainer.topics

    def declare(self, name: ObjectName, topic: TopicName | None, *, maintained: bool) -> None:
        self.topics[name] = topic
        if maintained:
            self.maintained.add(name)
        else:
            self.maintained.discard(name)
        self._graph = None

    def forget(self, name: ObjectName) -> None:
        self.topics.pop(name, None)
        self.maintained.discard(name)
        self._graph = None

    def add(self, program: Program) -> None:
        self.programs[program.query] = program
        self._graph = None

    def remove(self, query: QueryId) -> Program | None:
        self._graph = None
        return self.programs.pop(query, None)

    def maintainers(self, name: ObjectName) -> Sequence[Program]:
        """The programs that maintain an object."""
        return self._known().maintainers.get(name, ())

    def maintainer(self, name: ObjectName) -> Program | None:
        """The program that maintains a table, or the first of those that maintain a stream."""
        return next(iter(self.maintainers(name)), None)

    def readers(self, name: ObjectName) -> Sequence[Program]:
        """The programs that run when an object has new rows."""
        return self._known().readers.get(name, ())

    def downstream(self, program: Program, among: Mapping[QueryId, Program]) -> dict[QueryId, Program]:
        """The programs in `among` that are downstream of a program."""
        found: dict[QueryId, Program] = {}
        waiting = [program.object]
        while waiting:
            for reader in self.readers(waiting.pop(0)):
                if reader.query in among and reader.query not in found:
                    found[reader.query] = reader
                    waiting.append(reader.object)
        return found

    def dependents(self, name: ObjectName) -> Sequence[Program]:
        """The programs that read an object: those that its rows drive, and those that look it up."""
        return self._known().dependents.get(name, ())

    def depth(self, program: Program) -> int:
        """The number of rounds before a program's first stage."""
        depths = self._known().depths
        if program.query not in depths:
            upstream = [maintainer for name in program.needs for maintainer in self.maintainers(name)]
            depths[program.query] = max((self.depth(each) + each.rounds for each in upstream), default=0)
        return depths[program.query]

    def rounds(self, queries: Mapping[QueryId, Program]) -> Iterator[list[tuple[Program, int]]]:
        """The stages of `queries`, upstream before downstream; stages of the same depth form one round."""
        levels: dict[int, list[tuple[Program, int]]] = {}
        for program in queries.values():
            first = self.depth(program)
            for index, stage in enumerate(program.stages):
                levels.setdefault(first + stage.round, []).append((program, index))
        for level in sorted(levels):
            yield levels[level]

    def _known(self) -> "_Graph":
        if self._graph is None:
            self._graph = _Graph.of(self.programs.values(), self.maintained)
        return self._graph


@dataclass(frozen=True, slots=True)
class _Graph:
    """Who maintains and who reads each object, and the depths that were asked for. Of one set of programs."""

    maintainers: Mapping[ObjectName, Sequence[Program]]
    readers: Mapping[ObjectName, Sequence[Program]]
    dependents: Mapping[ObjectName, Sequence[Program]]
    depths: dict[QueryId, int] = field(default_factory=dict)

    @staticmethod
    def of(programs: Iterable[Program], maintained: Set[ObjectName]) -> "_Graph":
        maintainers: dict[ObjectName, list[Program]] = {}
        readers: dict[ObjectName, list[Program]] = {}
        dependents: dict[ObjectName, list[Program]] = {}
        for program in programs:
            if program.object in maintained:
                maintainers.setdefault(program.object, []).append(program)
            for name in program.objects:
                readers.setdefault(name, []).append(program)
            for name in program.needs:
                dependents.setdefault(name, []).append(program)
        return _Graph(maintainers, readers, dependents)
