"""The sender answers a heartbeat: which dispatchers it still knows.

heartbeat_response := cluster_id:u64 count:u32 dispatcher_state*count
dispatcher_state := id state:u8                             (0 normal, 1 removed)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.wire.cursor import U8, U32, U64, Cursor
from tidemark.wire.events.base import Codec, Event
from tidemark.wire.ids import ID_SIZE
from tidemark.wire.json_form import id_form

STATE_NAMES = ("normal", "removed")
STATE_SIZE = ID_SIZE + 1


@dataclass(frozen=True, slots=True)
class DispatcherState:
    dispatcher_id: bytes
    state: int

    def fields(self) -> dict[str, Any]:
        return {
            "dispatcher_id": id_form(self.dispatcher_id),
            "state": self.state,
            "state_name": STATE_NAMES[self.state],
        }


@dataclass(frozen=True, slots=True)
class DispatcherHeartbeatResponse(Event):
    type_id: ClassVar[int] = 12

    cluster_id: int
    states: tuple[DispatcherState, ...]
    version: int = 1

    def fields(self) -> dict[str, Any]:
        return {
            "cluster_id": str(self.cluster_id),
            "dispatcher_count": len(self.states),
            "states": [state.fields() for state in self.states],
        }


def parse(cursor: Cursor, version: int) -> DispatcherHeartbeatResponse:
    cluster_id = cursor.u64("cluster_id")
    states = []
    for index in range(cursor.count("dispatcher count", STATE_SIZE)):
        with cursor.group(f"dispatcher {index}"):
            dispatcher_id = cursor.id("dispatcher_id")
            state = cursor.u8("state")
            if state >= len(STATE_NAMES):
                raise cursor.invalid(
                    f"dispatcher state {state} is neither 0 normal nor 1 removed",
                    start=cursor.pos - 1,
                    expected=[0, 1],
                    actual=state,
                )
            states.append(DispatcherState(dispatcher_id, state))
    return DispatcherHeartbeatResponse(cluster_id, tuple(states), version)


def write(event: DispatcherHeartbeatResponse) -> bytes:
    parts = [U64.pack(event.cluster_id), U32.pack(len(event.states))]
    for state in event.states:
        parts += (state.dispatcher_id, U8.pack(state.state))
    return b"".join(parts)


def size(event: DispatcherHeartbeatResponse) -> int:
    return 12 + len(event.states) * STATE_SIZE


V1 = Codec(parse=parse, write=write, size=size)
