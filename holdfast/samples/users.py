"""Users and their changes: the table that orders and page views refer to."""

from collections.abc import Mapping

import numpy as np

from holdfast.samples.sample import Make, Sample, SampleKind, Values, chosen, numbered, words

USERS = 1000
FIRST = ("Ada", "Ben", "Cleo", "Dag", "Eva", "Finn", "Gita", "Hugo", "Ida", "Jon", "Kaya", "Lars", "Mia", "Nils")
LAST = ("Berg", "Costa", "Dahl", "Evans", "Fonseca", "Garcia", "Holm", "Ito", "Jansen", "Khan", "Lind", "Moreau")
CITIES = {"Oslo": 8, "Lisbon": 6, "Hamburg": 7, "Genoa": 4, "Osaka": 9, "Lagos": 10, "Halifax": 2, "Auckland": 3}
OPENED_AT = 1_577_836_800_000
"""When the shop opened; no user registered earlier."""
YEAR_MS = 31_536_000_000


def start() -> Make:
    return make


def make(random: np.random.Generator, first: int, count: int) -> Mapping[str, Values]:
    """The first rows contain every user once; later rows are changes."""
    numbers = np.arange(first, first + count)
    ids = np.where(numbers < USERS, numbers, random.integers(0, USERS, count))
    # Columns that never change are derived from the id.
    return {
        "id": numbered("user-", ids, 4),
        "first_name": words(FIRST, ids % len(FIRST)),
        "last_name": words(LAST, ids % len(LAST)),
        "city": chosen(random, CITIES, count),
        "level": np.minimum(random.geometric(0.5, count), 5).astype(np.int32),
        "registered_at": OPENED_AT + (ids * 2_654_435_761) % (4 * YEAR_MS),
    }


SAMPLE_USERS = Sample(
    "users",
    f"{USERS:,} users and changes of their city and level; orders and pageviews refer to them",
    SampleKind.TABLE,
    {
        "id": "STRING",
        "first_name": "STRING",
        "last_name": "STRING",
        "city": "STRING",
        "level": "INT",
        "registered_at": "BIGINT",
    },
    start,
)
