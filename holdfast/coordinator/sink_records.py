"""The sink of each query, stored beside its pending rows.

A release that cannot read the plan of a query can then still publish its pending rows.
"""

from collections.abc import Mapping

from holdfast.names import QueryId, TopicName
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.property_types import ROOT
from holdfast.runtime.plan.vocabulary import FORMATS, WINDOW_INFO
from holdfast.runtime.plan.windows import WindowInfo, WindowTopic
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.store.port import Store


class SinkRecords:
    """Reads and writes sinks as facts of the store, which forgets them with their query. From any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sinks = {
            QueryId(key.removesuffix(SUFFIX)): decode_sink(text)
            for key, text in store.facts("").items()
            # A fact of a topic named "sink" ends the same way.
            if key.endswith(SUFFIX) and text.startswith("{")
        }

    def put(self, query: QueryId, sink: Sink) -> None:
        self._store.put(f"{query}{SUFFIX}", encode_sink(sink))
        self._sinks[query] = sink

    def get(self, query: QueryId) -> Sink | None:
        return self._sinks.get(query)

    def all(self) -> Mapping[QueryId, Sink]:
        """The sinks of all queries, also of those that were dropped and still have pending rows."""
        return dict(self._sinks)

    def forget(self, query: QueryId) -> None:
        """The store has forgotten a query."""
        self._sinks.pop(query, None)


SUFFIX = "/sink"
"""Ends the key of a query's sink."""


def encode_sink(sink: Sink) -> str:
    encoder = sink.encoder
    document: dict[str, json_text.JsonValue] = {
        "topic": sink.topic,
        "schema": str(encoder.schema),
        "formats": FORMATS.encode(encoder.formats),
    }
    if encoder.window is not None:
        document["window"] = WINDOW_INFO.encode(encoder.window)
    if encoder.window_topic is not WindowTopic.TOPIC:
        document["window_topic"] = encoder.window_topic
    return json_text.write(document).decode()


def decode_sink(text: str) -> Sink:
    document = json_text.read(text.encode())
    assert isinstance(document, dict)
    formats = FORMATS.decode(document["formats"], ROOT)
    window = WINDOW_INFO.decode(document["window"], ROOT) if "window" in document else None
    assert isinstance(formats, Formats)
    assert window is None or isinstance(window, WindowInfo)
    window_topic = WindowTopic(str(document.get("window_topic", WindowTopic.TOPIC)))
    schema = parse_schema(str(document["schema"]))
    return Sink(TopicName(str(document["topic"])), Encoder(schema, formats, window, window_topic))
