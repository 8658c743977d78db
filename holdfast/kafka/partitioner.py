"""The partitioner of Kafka's Java clients, for windowed keys and for the in-memory Kafka."""

import pyarrow as pa
import pyarrow.compute as pc

SEED = 0x9747B28C
FACTOR = 0x5BD1E995
WORD = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """The hash of Kafka's Java clients, as an unsigned number."""
    hashed = SEED ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(key[at : at + 4], "little") * FACTOR & WORD
        part = (part ^ (part >> 24)) * FACTOR & WORD
        hashed = (hashed * FACTOR & WORD) ^ part
    if rest := key[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * FACTOR & WORD
    hashed = (hashed ^ (hashed >> 13)) * FACTOR & WORD
    return hashed ^ (hashed >> 15)


def partition_for(key: bytes, partitions: int) -> int:
    """The partition that a Java producer chooses for a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partitions_for(keys: pa.Array | pa.ChunkedArray, partitions: int) -> pa.Array | pa.ChunkedArray:
    """The partition of each key, null for null; each distinct key is hashed once."""
    different = pc.unique(keys)
    chosen = pa.array(
        [None if key is None else partition_for(key, partitions) for key in different.to_pylist()], pa.int32()
    )
    return pc.take(chosen, pc.index_in(keys, different))
