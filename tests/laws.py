"""The number of examples of slow property tests: those that need Spark or open stores on disk.

`make test` runs each with a few fixed examples, after those of its file's `@example` if there are any. `make soak`
runs hundreds of random examples and prints the seed.
"""

import os

from hypothesis import HealthCheck, Phase, settings

SOAK = bool(os.environ.get("SOAK"))
SOAK_EXAMPLES = 300


def slow_law(fixed: int) -> settings:
    """Settings of a law with `fixed` examples in `make test`."""
    if SOAK:
        return settings(max_examples=SOAK_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    return settings(
        max_examples=fixed,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )
