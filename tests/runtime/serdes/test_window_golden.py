"""The keys that Kafka Streams itself wrote are read and written byte for byte."""

import pyarrow as pa
from conformance.windowed_records import read_topics

from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.serdes.window import unwindowed, windowed
from holdfast.types import Column, Role, Scalar, Schema

from .round_trip import decode, formats


def test_a_single_key_is_read_and_written(conformance):
    for topic in read_topics(conformance):
        for record in topic.records:
            parts = topic.parts(record)
            assert topic.layout.encode(parts) == record.key
            assert parts.sequence == 0
            assert parts.key.decode().isprintable()
            assert 0 <= parts.start <= parts.end


def test_columns_of_keys_are_read_by_spark_and_written_by_arrow(conformance, engine):
    for topic in read_topics(conformance):
        layout = topic.layout
        schema = Schema((Column("K", Scalar.STRING, Role.KEY), Column("V", topic.value_type)))
        decoder = Decoder(schema, formats("KAFKA", "KAFKA"), True, layout.window, layout.topic)
        raw = pa.chunked_array([[record.key for record in topic.records]])
        rows = decode(engine, decoder, [record.value for record in topic.records], raw.to_pylist())
        parts = [topic.parts(record) for record in topic.records]
        assert rows.column("bad").unique().to_pylist() == [0]
        assert rows.column("k0").to_pylist() == [each.key.decode() for each in parts]
        starts, ends = rows.column("k1"), rows.column("k2")
        assert starts.to_pylist() == [each.start for each in parts]
        assert ends.to_pylist() == [each.end for each in parts]
        assert rows.column("c0").to_pylist() == [topic.value(record) for record in topic.records]
        keys = unwindowed(raw, layout.window.type, layout.topic)
        assert keys.to_pylist() == [each.key for each in parts]
        again = windowed(keys.combine_chunks(), starts, ends, layout.window.type, layout.topic)
        assert again.to_pylist() == raw.to_pylist()
