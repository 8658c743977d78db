"""What PRINT shows of records whose formats are not declared."""

import struct

from holdfast.serving.printer import Printer


def record(key: bytes | None, value: bytes | None, timestamp: int | None = 0, partition: int = 0) -> dict[str, object]:
    return {"key": key, "value": value, "timestamp": timestamp, "partition": partition}


def test_the_formats_come_first_and_again_when_they_become_fewer():
    printer = Printer()
    first = list(printer.lines([record(b"roof", b'{"a":1}', 1_706_680_800_123), record(None, None, None, 2)]))
    assert first == [
        "Key format: KAFKA_STRING or KAFKA_INT",
        "Value format: JSON or KAFKA_STRING",
        'rowtime: 2024/01/31 06:00:00.123 Z, key: roof, value: {"a":1}, partition: 0',
        "rowtime: N/A, key: <null>, value: <null>, partition: 2",
    ]
    assert list(printer.lines([record(b"roof", b"plain text")])) == [
        "Key format: KAFKA_STRING or KAFKA_INT",
        "Value format: KAFKA_STRING",
        "rowtime: 1970/01/01 00:00:00.000 Z, key: roof, value: plain text, partition: 0",
    ]


def shown(key: bytes) -> tuple[str, str]:
    formats, _, line = Printer().lines([record(key, None)])
    return formats.removeprefix("Key format: "), line.split(", ")[1].removeprefix("key: ")


def test_bytes_are_read_in_the_first_format_that_they_can_be():
    assert shown(struct.pack(">i", 7)) == ("KAFKA_INT", "7")
    assert shown(struct.pack(">q", -7)) == ("KAFKA_BIGINT or KAFKA_DOUBLE", "-7")
    start = struct.pack(">q", 1_706_680_800_000)
    end = struct.pack(">q", 1_706_680_900_000)
    assert shown(b"ann" + start) == ("TUMBLING(KAFKA_STRING) or HOPPING(KAFKA_STRING)", "[ann@1706680800000/-]")
    assert shown(b"ann" + end + start)[1] == "[ann@1706680800000/1706680900000]"
    assert shown(b"\xff\x00a") == ("UNRECOGNIZED_BYTES", "\\xFF\\x00a")


def test_every_nth_record_up_to_a_limit():
    printer = Printer(interval=2, limit=2)
    lines = list(printer.lines([record(b"k", str(n).encode()) for n in range(10)]))
    assert [line.split(", ")[2] for line in lines[2:]] == ["value: 0", "value: 2"]
    assert printer.done
