"""Orders of a ship chandler."""

from collections.abc import Mapping

import numpy as np

from holdfast.samples.sample import Make, Sample, SampleKind, Values, chosen, numbered, popular, weighted, words
from holdfast.samples.users import USERS

REGIONS = {"north": 5, "south": 3, "east": 4, "west": 2}
"""The relative number of orders from each region."""
ITEMS = {"rope": 12.5, "chart": 18.0, "lantern": 39.9, "compass": 85.0, "sail": 260.0, "anchor": 480.0}
POPULARITY = (30, 24, 18, 14, 9, 5)


def start() -> Make:
    return make


def make(random: np.random.Generator, first: int, count: int) -> Mapping[str, Values]:
    items = weighted(random, POPULARITY, count)
    prices = np.array(list(ITEMS.values()))[items]
    quantity = random.geometric(0.45, count).astype(np.int32)
    return {
        "id": numbered("order-", np.arange(first + 1, first + count + 1), 6),
        "customer": numbered("user-", popular(random, USERS, count), 4),
        "region": chosen(random, REGIONS, count),
        "item": words(list(ITEMS), items),
        "quantity": quantity,
        "amount": np.round(prices * quantity, 2),
    }


ORDERS = Sample(
    "orders",
    "orders of a shop: who bought what, how many, for how much",
    SampleKind.STREAM,
    {
        "id": "STRING",
        "customer": "STRING",
        "region": "STRING",
        "item": "STRING",
        "quantity": "INT",
        "amount": "DOUBLE",
    },
    start,
)
