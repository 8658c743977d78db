"""The names of the views that jobs read; the same name for the same contents."""

from hashlib import sha1

from holdfast.names import ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.serdes.decoder import Decoder


def decoded_view(topic: TopicName, decoder: Decoder) -> str:
    """The view of a topic's records as decoded by `decoder`."""
    keys = f"{decoder.keyed}\0{decoder.window}\0{decoder.window_topic}"
    return "d_" + _digest(f"{topic}\0{decoder.schema}\0{decoder.formats}\0{keys}")


def topic_view(topic: TopicName) -> str:
    return "t_" + _digest(topic)


def object_view(name: ObjectName) -> str:
    return "o_" + _digest(name)


def state_view(state: StateId) -> str:
    return "s_" + _digest(state)


def saved_view(query: QueryId, stage: int) -> str:
    return "h_" + _digest(f"{query}\0{stage}")


def state_lookup_view(state: StateId, stage: int) -> str:
    return "r_" + _digest(f"{state}\0{stage}")


def lookup_view(query: QueryId, stage: int, name: ObjectName) -> str:
    return "l_" + _digest(f"{query}\0{stage}\0{name}")


def groups_view(state: StateId) -> str:
    return "g_" + _digest(state)


def due_view(state: StateId) -> str:
    return "w_" + _digest(state)


def _digest(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]
