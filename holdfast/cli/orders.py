"""Sample orders for the demo, sent as any Kafka producer would."""

import json
import random
import threading
import time

import pyarrow as pa

from holdfast.config import Settings
from holdfast.kafka.publisher import Outgoing
from holdfast.kafka.writer import RecordWriter
from holdfast.names import TopicName

TOPIC = TopicName("orders")
REGIONS = {"north": 5, "south": 3, "east": 4, "west": 2}
"""How many of each fourteen orders come from where."""
ITEMS = {"rope": 12.5, "anchor": 480.0, "lantern": 39.9, "compass": 85.0, "sail": 260.0, "chart": 18.0}


class Orders:
    """An endless supply of orders, the same ones in every run. For one thread at a time."""

    def __init__(self, settings: Settings, chance: random.Random) -> None:
        self._writer = RecordWriter(settings)
        self._chance = chance
        self._sent = 0

    def send(self, count: int) -> None:
        """Send orders; they are durable when this returns."""
        keys, values = zip(*(self._order() for _ in range(count)), strict=True)
        now = int(time.time() * 1000)
        rows = pa.table(
            {
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp": pa.array([now] * count, pa.int64()),
            }
        )
        self._writer.write(Outgoing(TOPIC, rows))

    def keep_sending(self, stop: threading.Event, count: int, seconds: float) -> None:
        """Send `count` orders every so many seconds until told to stop."""
        while not stop.wait(seconds):
            self.send(count)

    def close(self) -> None:
        self._writer.close()

    def _order(self) -> tuple[bytes, bytes]:
        self._sent += 1
        (region,) = self._chance.choices(list(REGIONS), list(REGIONS.values()))
        item = self._chance.choice(list(ITEMS))
        quantity = self._chance.randint(1, 5)
        order = {"region": region, "item": item, "quantity": quantity, "amount": round(ITEMS[item] * quantity, 2)}
        return f"order-{self._sent:06}".encode(), json.dumps(order).encode()
