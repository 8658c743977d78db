"""The samples by name."""

from holdfast.samples.orders import ORDERS
from holdfast.samples.pageviews import PAGEVIEWS
from holdfast.samples.trades import TRADES
from holdfast.samples.users import SAMPLE_USERS

SAMPLES = {sample.name: sample for sample in (ORDERS, SAMPLE_USERS, PAGEVIEWS, TRADES)}
