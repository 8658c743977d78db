"""The Python client: `Client` blocks, `AsyncClient` is for asyncio."""

from holdfast.client.aio import AsyncClient, AsyncStream
from holdfast.client.changes import Change
from holdfast.client.client import Client, Stream
from holdfast.client.entities import Entities
from holdfast.client.errors import BadResponse, RowRefused, ServerError, Unreachable
from holdfast.client.response import Header, Notice, Progress, Row, Snapshot
from holdfast.client.result import Result
from holdfast.client.session import Entity
from holdfast.client.subscribe import AsyncSubscription, Subscription
from holdfast.config import DEFAULT_SERVER

__all__ = [
    "DEFAULT_SERVER",
    "AsyncClient",
    "AsyncStream",
    "AsyncSubscription",
    "BadResponse",
    "Change",
    "Client",
    "Entities",
    "Entity",
    "Header",
    "Notice",
    "Progress",
    "Result",
    "Row",
    "RowRefused",
    "ServerError",
    "Snapshot",
    "Stream",
    "Subscription",
    "Unreachable",
]
