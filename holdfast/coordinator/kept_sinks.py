"""Where a query's rows go, as the store remembers it beside what it owes to them.

What is owed can then be published by a release that cannot read the plan of the query.
"""

from holdfast.names import TopicName
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan import jsontext
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.forms import ROOT
from holdfast.runtime.plan.shapes import FORMATS, WINDOW_INFO
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.encoding import Encoder


def encode_sink(sink: Sink) -> str:
    encoder = sink.encoder
    said: dict[str, jsontext.JsonValue] = {
        "topic": sink.topic,
        "schema": str(encoder.schema),
        "formats": FORMATS.encode(encoder.formats),
    }
    if encoder.window is not None:
        said["window"] = WINDOW_INFO.encode(encoder.window)
    return jsontext.write(said).decode()


def decode_sink(text: str) -> Sink:
    said = jsontext.read(text.encode())
    assert isinstance(said, dict)
    formats = FORMATS.decode(said["formats"], ROOT)
    window = WINDOW_INFO.decode(said["window"], ROOT) if "window" in said else None
    assert isinstance(formats, Formats)
    assert window is None or isinstance(window, WindowInfo)
    return Sink(TopicName(str(said["topic"])), Encoder(parse_schema(str(said["schema"])), formats, window))
