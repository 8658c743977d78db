from decimal import Decimal

import pytest

from holdfast.coordinator.sink_records import decode_sink, encode_sink
from holdfast.names import TopicName
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, SerdeFeature
from holdfast.runtime.plan.optional import ABSENT
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic, WindowType
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.encoder import Encoder

JSON, KAFKA = FormatInfo(format="JSON"), FormatInfo(format="KAFKA")
LINES = FormatInfo(format="DELIMITED", properties=FormatProperties(delimiter="|"))


@pytest.mark.parametrize(
    "encoder",
    [
        Encoder(parse_schema("`K` STRING KEY, `V` INTEGER"), Formats(key_format=KAFKA, value_format=JSON)),
        Encoder(
            parse_schema("`a b` STRUCT<`x` INTEGER, `Y` ARRAY<STRING>> KEY, `d` DECIMAL(5, 2)"),
            Formats(key_format=JSON, value_format=LINES, value_features=(SerdeFeature.UNWRAP_SINGLES,)),
        ),
        Encoder(
            parse_schema("`K` BIGINT KEY, `N` BIGINT"),
            Formats(key_format=KAFKA, value_format=JSON),
            WindowInfo(type=WindowType.TUMBLING, size=Duration(Decimal("60.000000000")), emit_strategy=ABSENT),
        ),
        Encoder(
            parse_schema("`K` BIGINT KEY, `N` BIGINT"),
            Formats(key_format=KAFKA, value_format=JSON),
            WindowInfo(type=WindowType.SESSION, size=ABSENT, emit_strategy=ABSENT),
        ),
        Encoder(
            parse_schema("`K` BIGINT KEY, `N` BIGINT"),
            Formats(key_format=KAFKA, value_format=JSON),
            WindowInfo(type=WindowType.HOPPING, size=Duration(Decimal(60))),
            WindowTopic.CHANGELOG,
        ),
    ],
)
def test_a_sink_is_read_as_it_was_kept(encoder: Encoder):
    sink = Sink(TopicName("t"), encoder)
    assert decode_sink(encode_sink(sink)) == sink
