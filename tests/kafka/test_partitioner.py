import shutil
import subprocess

import pyarrow as pa
import pytest

from holdfast.config import load
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.kafka.partitioner import murmur2, partition_for, partitions_for

PARTITIONS = 7
KEYS = [b"", b"a", b"ab", b"abc", b"abcd", bytes(8), b"\xff" * 13, *(f"key-{n}".encode() for n in range(60))]

JAVA_PRODUCER = """
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;

public class Partitions {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String hex : Arrays.asList(args).subList(2, args.length)) {
                byte[] key = HexFormat.of().parseHex(hex.substring(1));
                var sent = producer.send(new ProducerRecord<>(args[1], key, new byte[0])).get();
                System.out.println(Integer.toUnsignedString(Utils.murmur2(key)) + " " + sent.partition());
            }
        }
    }
}
"""


@pytest.fixture(scope="module")
def java_choice(broker, tmp_path_factory):
    """What a Java producer hashes each key to, and where it puts it."""
    from holdfast.kafka.librdkafka.admin import Admin
    from holdfast.kafka.port import TopicSpec

    settings = load({}, environment={}).at_kafka(broker.bootstrap)
    Admin(settings).create(TopicSpec(name="of_java", partitions=PARTITIONS))
    source = tmp_path_factory.mktemp("java") / "Partitions.java"
    source.write_text(JAVA_PRODUCER)
    java = find_java()
    if shutil.which("javac") is None:
        pytest.skip("running Java source needs a JDK")
    jars = ":".join(map(str, fetch_jars(JarSet.BROKER, settings.jar_dir, java=java)))
    arguments = [broker.bootstrap, "of_java", *("x" + key.hex() for key in KEYS)]
    run = subprocess.run([java, "-cp", jars, str(source), *arguments], capture_output=True, text=True, check=True)
    lines = [line.split() for line in run.stdout.splitlines() if line]
    return {key: (int(hashed), int(partition)) for key, (hashed, partition) in zip(KEYS, lines, strict=True)}


def test_murmur2_is_javas(java_choice):
    assert {key: (murmur2(key), partition_for(key, PARTITIONS)) for key in KEYS} == java_choice


def test_the_producer_puts_keys_where_a_java_producer_does(java_choice, kafka, ranges, new_topic):
    topic = new_topic(PARTITIONS)
    producer = kafka.producer(f"{topic}-id")
    producer.start()
    producer.begin()
    for key in KEYS:
        producer.produce(topic, key, key, timestamp=1)
    ends = producer.commit()
    producer.close()
    read = ranges.read({partition: (0, end) for partition, end in ends.items()})
    placed = dict(zip(read["key"].to_pylist(), read["partition"].to_pylist(), strict=True))
    # librdkafka treats an empty key as none, unless configured otherwise; both are random there.
    assert {key: at for key, at in placed.items() if key} == {key: at for key, (_, at) in java_choice.items() if key}
    assert placed[b""] == java_choice[b""][1]


def test_partitions_of_a_column(java_choice):
    keys = pa.chunked_array([KEYS, [None, *KEYS[:3]]], pa.binary())
    expected = [java_choice[key][1] for key in KEYS] + [None] + [java_choice[key][1] for key in KEYS[:3]]
    assert partitions_for(keys, PARTITIONS).to_pylist() == expected
