"""The engines of a service."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from holdfast.runtime.spark.engine import QUERY_TIMEOUT, Engine
from holdfast.runtime.spark.session import Sessions


@dataclass(frozen=True, slots=True)
class EnginePair:
    """One engine for ticks and one for clients' jobs, which run at the same time with views of the same names."""

    ticks: Engine
    reads: Engine

    @classmethod
    def open(cls, sessions: Sessions, kafka_options: Mapping[str, str], timeout: timedelta = QUERY_TIMEOUT) -> Self:
        return cls(Engine(sessions, kafka_options, timeout), Engine(sessions.isolated(), kafka_options, timeout))
