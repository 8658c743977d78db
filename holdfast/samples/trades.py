"""Trades at an exchange; each symbol's price is a random walk."""

from collections.abc import Mapping

import numpy as np

from holdfast.samples.sample import Sample, SampleKind, Values, chosen, weighted, words

PRICES = {"KELP": 12.4, "REEF": 88.1, "TIDE": 45.7, "SALT": 7.9, "GULL": 153.0, "MAST": 31.6, "BUOY": 4.2, "DOCK": 66.6}
ACTIVITY = (20, 12, 18, 9, 6, 15, 25, 10)
STEP = 0.0008
"""Standard deviation of a price's relative change per trade."""


class Walk:
    """Generates trades; holds the price of each symbol after its last trade."""

    def __init__(self) -> None:
        self._prices = np.array(list(PRICES.values()))

    def __call__(self, random: np.random.Generator, first: int, count: int) -> Mapping[str, Values]:
        symbols = weighted(random, ACTIVITY, count)
        steps = random.normal(0, STEP, count)
        prices = np.empty(count)
        for symbol in np.unique(symbols):
            own = symbols == symbol
            prices[own] = self._prices[symbol] * np.exp(np.cumsum(steps[own]))
            self._prices[symbol] = prices[own][-1]
        return {
            "symbol": words(list(PRICES), symbols),
            "id": np.arange(first + 1, first + count + 1),
            "side": chosen(random, {"BUY": 1, "SELL": 1}, count),
            "price": np.round(prices, 4),
            "quantity": (random.geometric(0.2, count) * 100).astype(np.int64),
        }


TRADES = Sample(
    "trades",
    "trades at an exchange: symbol, side, price (a random walk) and quantity",
    SampleKind.STREAM,
    {"symbol": "STRING", "id": "BIGINT", "side": "STRING", "price": "DOUBLE", "quantity": "BIGINT"},
    Walk,
)
