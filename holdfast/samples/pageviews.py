"""Page views of a shop."""

from collections.abc import Mapping

import numpy as np

from holdfast.samples.sample import Make, Sample, SampleKind, Values, chosen, numbered, popular
from holdfast.samples.users import USERS

PAGES = {"/": 40, "/search": 25, "/items": 20, "/item": 30, "/cart": 8, "/pay": 4, "/help": 3}
REFERRERS = {"direct": 50, "search": 30, "mail": 12, "partner": 8}
STATUSES = {"200": 970, "304": 20, "404": 7, "500": 3}


def start() -> Make:
    return make


def make(random: np.random.Generator, first: int, count: int) -> Mapping[str, Values]:
    del first
    return {
        "user": numbered("user-", popular(random, USERS, count), 4),
        "page": chosen(random, PAGES, count),
        "referrer": chosen(random, REFERRERS, count),
        "status": chosen(random, STATUSES, count).cast("int32"),
        # Most pages load quickly, a few slowly: a log-normal duration with a median of 180 ms.
        "ms": np.clip(np.exp(random.normal(np.log(180), 0.8, count)), 5, 60_000).astype(np.int64),
    }


PAGEVIEWS = Sample(
    "pageviews",
    "page views of a shop: user, page, referrer, status and duration",
    SampleKind.STREAM,
    {"user": "STRING", "page": "STRING", "referrer": "STRING", "status": "INT", "ms": "BIGINT"},
    start,
)
