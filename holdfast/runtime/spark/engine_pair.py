"""The engines of a service."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.session import Sessions


@dataclass(frozen=True, slots=True)
class EnginePair:
    """One engine for ticks and one for clients' jobs, which run at the same time with views of the same names."""

    ticks: Engine
    reads: Engine

    @classmethod
    def open(cls, sessions: Sessions, kafka_options: Mapping[str, str]) -> Self:
        return cls(Engine(sessions, kafka_options), Engine(sessions.isolated(), kafka_options))
