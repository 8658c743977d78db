"""The rows of the system tables that are not derived from the catalog."""

from holdfast.coordinator.holds import Holds
from holdfast.coordinator.system_tables import RowsByTable
from holdfast.runtime.store.port import Time
from holdfast.service.push import PushRegistry
from holdfast.service.status import ServiceStatus
from holdfast.serving.push.lag_watch import subscription_infos


def status_rows(status: ServiceStatus, registry: PushRegistry, holds: Holds, now: Time) -> RowsByTable:
    """By the name of the table."""
    found = holds.status()
    return {
        "mz_queries": [(q.id, q.state, q.done, q.reason, q.sink, q.statement) for q in status.queries()],
        "mz_subscriptions": [
            (s.id, ", ".join(s.reads), s.created_ms, s.pinned_at, s.lag_ms, s.rows, s.bytes, s.buffered_bytes,
             s.peak_buffered_bytes)
            for s in subscription_infos(registry.pushes(), now)
        ],
        "mz_holds": [(h.hold.id, None, h.hold.name, h.at) for h in found],
        "mz_hold_objects": [(h.hold.id, name) for h in found for name in h.hold.on],
        "mz_hold_status": [
            (h.hold.id, h.lag_ms, h.hold.max_lag_ms, h.pinned.rows, h.pinned.bytes, h.advanced, h.reason)
            for h in found
        ],
    }  # fmt: skip
