"""The responses about indexes."""

from collections.abc import Iterable, Mapping

from holdfast.catalog.objects import Index
from holdfast.names import QueryId
from holdfast.server.entities import entity
from holdfast.server.problems import Json
from holdfast.service.status import QueryInfo


def listed_indexes(text: str, found: Iterable[Index], queries: Iterable[QueryInfo]) -> Json:
    known = {query.id: query for query in queries}
    return entity("indexes", text, indexes=[_index(index, known) for index in found])


def described_index(text: str, index: Index, queries: Iterable[QueryInfo]) -> Json:
    columns = (*index.schema.key, *index.schema.value, *index.schema.headers)
    described = {
        **_index(index, {query.id: query for query in queries}),
        "statement": index.statement,
        "columns": [{"name": column.name, "type": str(column.type)} for column in columns],
    }
    return entity("indexDescription", text, indexDescription=described)


def _index(index: Index, queries: Mapping[QueryId, QueryInfo]) -> Json:
    query = queries.get(index.query)
    return {
        "name": index.name,
        "on": index.on,
        "by": list(index.by),
        "default": not index.expressions,
        "retainMs": index.retain_ms,
        "query": index.query,
        "state": query.state if query is not None else None,
        "reason": query.reason if query is not None else None,
    }
