"""One writer per prefix."""

import json
import multiprocessing
import time

import pytest
from storage_support import files_below

from tidemark.sinks.storage import lease as leases
from tidemark.sinks.storage.errors import LeaseHeld, LeaseLost
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.lease import FOLDER, Holder, Lease


@pytest.fixture
def store(tmp_path):
    return LocalStore(str(tmp_path))


def announce(store, **changes):
    holder = {**json.loads(Holder.current("another run").to_bytes()), **changes}
    store.write(f"{FOLDER}/other.json", json.dumps(holder).encode())


def test_the_second_writer_is_told_who_the_first_is(store):
    with (
        Lease.acquire(store, "the nightly run"),
        pytest.raises(LeaseHeld, match=r"the nightly run \(process \d+ on "),
    ):
        Lease.acquire(store)


def test_a_refused_writer_leaves_nothing(store, tmp_path):
    with Lease.acquire(store):
        before = files_below(tmp_path)
        with pytest.raises(LeaseHeld):
            Lease.acquire(store)
        assert files_below(tmp_path) == before


def test_a_released_lease_is_free_and_leaves_nothing(store, tmp_path):
    Lease.acquire(store).release()
    assert list(tmp_path.iterdir()) == []
    Lease.acquire(store).release()


def _hold(folder, ready):
    lease = Lease.acquire(LocalStore(folder))
    ready.set()
    time.sleep(60)
    lease.release()


def test_the_lease_of_a_dead_process_is_taken_over(store, tmp_path):
    context = multiprocessing.get_context("forkserver")
    ready = context.Event()
    process = context.Process(target=_hold, args=(str(tmp_path), ready))
    process.start()
    assert ready.wait(30)
    with pytest.raises(LeaseHeld):
        Lease.acquire(store)
    process.kill()
    process.join()
    with Lease.acquire(store):
        assert len(store.list(FOLDER)) == 1


def test_a_process_with_the_same_number_is_not_the_holder(store):
    announce(store, started="1")
    Lease.acquire(store).release()


def test_another_machine_holds_until_its_time_is_over(store):
    announce(store, host="elsewhere", machine="elsewhere", pid=1)
    with pytest.raises(LeaseHeld, match="process 1 on elsewhere"):
        Lease.acquire(store)
    announce(store, host="elsewhere", machine="elsewhere", pid=1, renewed=time.time() - leases.TTL - 1)
    Lease.acquire(store).release()


def test_an_unreadable_announcement_does_not_hold_forever(store):
    store.write(f"{FOLDER}/other.json", b"rubbish")
    Lease.acquire(store).release()


def test_a_holder_that_was_taken_over_stops(store, monkeypatch):
    lease = Lease.acquire(store)
    monkeypatch.setattr(leases, "_TRUST", 0)
    lease.check()
    store.delete(f"{FOLDER}/{lease.token}.json")
    with pytest.raises(LeaseLost, match="taken over"):
        lease.check()
    lease.release()


def test_a_holder_that_slept_through_its_time_stops(store, monkeypatch):
    lease = Lease.acquire(store)
    monkeypatch.setattr(leases, "_TRUST", 0)
    lease._renewed -= leases.TTL + 1
    with pytest.raises(LeaseLost):
        lease.check()
    lease.release()


def test_a_holder_renews(store):
    with Lease.acquire(store, ttl=0.3) as lease:
        path = f"{FOLDER}/{lease.token}.json"
        first = Holder.parse(store.read(path)).renewed
        deadline = time.monotonic() + 20
        while Holder.parse(store.read(path)).renewed == first and time.monotonic() < deadline:
            time.sleep(0.02)
        assert Holder.parse(store.read(path)).renewed > first


def test_another_process_of_the_run_acts_for_the_holder(store):
    with Lease.acquire(store) as lease:
        attached = Lease.attach(store, lease.token)
        attached.check()
        attached.release()
        lease._look()
    with pytest.raises(LeaseLost):
        Lease.attach(store, lease.token)


def test_of_two_at_the_same_time_never_both(store):
    """Each announces itself before it looks; here the second one announces between the two steps of the first."""
    real, others = store.list, []

    def list_after_company(folder):
        if not others:
            others.append(None)
            announce(store)
        return real(folder)

    store.list = list_after_company
    with pytest.raises(LeaseHeld):
        Lease.acquire(store)
