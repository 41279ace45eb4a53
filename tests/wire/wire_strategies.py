"""Hypothesis strategies: any event of any type, in any version it can be written with."""

from hypothesis import strategies as st

from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.batch_resolved import BatchResolvedEvent
from tidemark.wire.events.congestion_control import (
    ChangefeedMemory,
    CongestionControl,
    DispatcherMemory,
    MemoryRelease,
)
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.dml import DMLEvent, pack_keys
from tidemark.wire.events.drop import DropEvent
from tidemark.wire.events.drop_v2 import DropEventV2
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.heartbeat import DispatcherHeartbeat, Progress
from tidemark.wire.events.heartbeat_response import DispatcherHeartbeatResponse, DispatcherState
from tidemark.wire.events.heartbeat_v2 import ProgressV2
from tidemark.wire.events.not_reusable import NotReusableEvent
from tidemark.wire.events.ready import ReadyEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.events.sync_point import SyncPointEvent

u8 = st.integers(0, (1 << 8) - 1)
u32 = st.integers(0, (1 << 32) - 1)
u64 = st.integers(0, (1 << 64) - 1)
i64 = st.integers(-(1 << 63), (1 << 63) - 1)
ids = st.binary(min_size=16, max_size=16)
first_versions = st.sampled_from([0, 1])
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def some(strategy, most=4):
    return st.lists(strategy, max_size=most).map(tuple)


@st.composite
def dml_events(draw):
    keys = draw(st.lists(st.binary(max_size=12), max_size=12))
    return DMLEvent(
        draw(ids),
        draw(i64),
        draw(u64),
        draw(u64),
        draw(u64),
        draw(u64),
        draw(st.integers(0, (1 << 31) - 1)),
        draw(i64),
        draw(u32),
        bytes(draw(st.lists(st.integers(0, 2), max_size=12))),
        len(keys),
        pack_keys(keys),
        draw(first_versions),
    )


resolved_events = st.builds(ResolvedEvent, u64, u64, u64, ids, first_versions)
bodies = st.fixed_dictionaries(
    {"type": u8, "schema_name": text, "query": text, "start_ts": u64, "finished_ts": u64, "seq": u64},
    optional={
        "epoch": u64,
        "not_sync": st.booleans(),
        "blocked_tables": st.none(),
        "a key of tomorrow": text,
    },
)
changefeeds = st.builds(ChangefeedMemory, ids, u64, some(st.builds(DispatcherMemory, ids, u64)))
full_changefeeds = st.builds(
    ChangefeedMemory, ids, u64, some(st.builds(DispatcherMemory, ids, u64)), st.floats(allow_nan=False)
)

EVENTS = {
    "dml": dml_events(),
    "batch_dml": st.builds(BatchDMLEvent, some(dml_events()), st.binary(max_size=40), first_versions),
    "ddl": st.builds(
        DDLEvent.build, bodies, ids, st.binary(max_size=20), some(st.binary(max_size=20)), first_versions
    ),
    "resolved": resolved_events,
    "batch_resolved": st.builds(BatchResolvedEvent, some(resolved_events), first_versions),
    "sync_point": st.builds(SyncPointEvent, u64, u64, u64, ids, first_versions),
    "ready": st.builds(ReadyEvent, ids, first_versions),
    "handshake": st.builds(HandshakeEvent, u64, u64, u64, ids, st.binary(max_size=60), first_versions),
    "not_reusable": st.builds(NotReusableEvent, ids, first_versions),
    "drop": st.builds(DropEvent, ids, u64, u64, u64, first_versions),
    "drop v2": st.builds(DropEventV2, ids, u64, u64, u64, st.just(2), text),
    "congestion_control": st.builds(CongestionControl, u64, some(changefeeds), st.none(), first_versions),
    "congestion_control v2": st.builds(
        CongestionControl,
        u64,
        some(full_changefeeds),
        st.none() | some(st.builds(MemoryRelease, ids, u32)),
        st.just(2),
    ),
    "dispatcher_heartbeat": st.builds(
        DispatcherHeartbeat, u64, some(st.builds(Progress, ids, u64)), first_versions
    ),
    "dispatcher_heartbeat v2": st.builds(
        DispatcherHeartbeat, u64, some(st.builds(ProgressV2, ids, u64, u64)), st.just(2)
    ),
    "dispatcher_heartbeat_response": st.builds(
        DispatcherHeartbeatResponse,
        u64,
        some(st.builds(DispatcherState, ids, st.integers(0, 1))),
        first_versions,
    ),
}
