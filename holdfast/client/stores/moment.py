"""Times as stores accept them: aware datetimes, or milliseconds since the epoch."""

from datetime import datetime, timedelta

from holdfast.client.stores.windowed import EPOCH
from holdfast.errors import BadTime

Moment = datetime | int


def millis(moment: Moment) -> int:
    """Milliseconds since the epoch; refuses a datetime without a time zone."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise BadTime(
                f"{moment.isoformat()} has no time zone",
                hint="Write datetime(…, tzinfo=UTC), or the milliseconds since 1970.",
            )
        return (moment - EPOCH) // timedelta(milliseconds=1)
    if isinstance(moment, bool) or not isinstance(moment, int):
        raise BadTime(
            f"{moment!r} is not a time", hint="Write an aware datetime, or the milliseconds since 1970 as an int."
        )
    return moment
