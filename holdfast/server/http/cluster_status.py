"""/clusterStatus: the single node, and how far each of its queries is behind its topics."""

from collections.abc import Mapping, Sequence

from holdfast.names import QueryId
from holdfast.server.problems import Json
from holdfast.service.lag import Lag
from holdfast.service.status import QueryInfo


def cluster_status(host: str, queries: Sequence[QueryInfo], lags: Mapping[QueryId, Sequence[Lag]], now_ms: int) -> Json:
    per_query = {query.id: lags.get(query.id, ()) for query in queries}
    return {
        "clusterStatus": {
            host: {
                "hostAlive": True,
                "lastStatusUpdateMs": now_ms,
                "activeStandbyPerQuery": {query.id: query_stores(query, per_query[query.id]) for query in queries},
                "hostStoreLags": {
                    "stateStoreLags": {
                        f"{query.sink}#{query.id}": {
                            "lagByPartition": {
                                f"{lag.topic}-{lag.partition}": offsets(lag) for lag in per_query[query.id]
                            },
                            "size": len(per_query[query.id]),
                        }
                        for query in queries
                    },
                    "updateTimeMs": now_ms,
                },
            }
        }
    }


def query_stores(query: QueryInfo, lags: Sequence[Lag]) -> Json:
    return {
        "activeStores": [query.sink] if query.sink else [],
        "activePartitions": [{"topic": lag.topic, "partition": lag.partition} for lag in lags],
        "standByStores": [],
        "standByPartitions": [],
    }


def offsets(lag: Lag) -> Json:
    return {
        "currentOffsetPosition": lag.current,
        "endOffsetPosition": lag.end,
        "offsetLag": max(0, lag.end - lag.current),
    }
