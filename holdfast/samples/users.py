"""Users, and what changes about them: the table that orders and page views refer to."""

from collections.abc import Mapping

import numpy as np

from holdfast.samples.sample import Kind, Make, Sample, Values, chosen, numbered, words

USERS = 1000
FIRST = ("Ada", "Ben", "Cleo", "Dag", "Eva", "Finn", "Gita", "Hugo", "Ida", "Jon", "Kaya", "Lars", "Mia", "Nils")
LAST = ("Berg", "Costa", "Dahl", "Evans", "Fonseca", "Garcia", "Holm", "Ito", "Jansen", "Khan", "Lind", "Moreau")
CITIES = {"Oslo": 8, "Lisbon": 6, "Hamburg": 7, "Genoa": 4, "Osaka": 9, "Lagos": 10, "Halifax": 2, "Auckland": 3}
OPENED_AT = 1_577_836_800_000
"""When the shop opened: nobody registered before."""
YEAR_MS = 31_536_000_000


def start() -> Make:
    return make


def make(random: np.random.Generator, first: int, count: int) -> Mapping[str, Values]:
    """The first rows introduce every user once; those after them are changes."""
    numbers = np.arange(first, first + count)
    ids = np.where(numbers < USERS, numbers, random.integers(0, USERS, count))
    # What never changes comes from the id alone.
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
    f"{USERS:,} users and the changes of their city and level; the others' customers and visitors",
    Kind.TABLE,
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
