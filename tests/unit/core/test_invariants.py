"""Each invariant can fail: break the state behind the fleet's back, and the check says what differs."""

import pytest

from lorapick.core.columns import SOURCE_SHIFT
from lorapick.model.tiers import Tier
from lorapick.testing.playbook import Playbook, plain_pod


@pytest.fixture
def book():
    """One pod that serves one adapter and loads another, with a follower and one more that waits for a place."""
    book = Playbook(pods=[plain_pod("a", max_num_seqs=2, max_queue=1)], adapters=["legal", "code"])
    book.arrive("legal", blocks=(1, 2))
    book.start("r1")
    book.arrive("code")
    book.arrive("code")
    assert book.arrive("code") == ["r4 waits for a until 1.4"]
    assert book.arrive("base") == ["r5 waits for a place until 30"]
    return book


def lose_an_outcome(state):
    state.tally.arrivals += 1


def miscount_tiers(state):
    state.tally.picks_by_tier["disk"] += 1


def miscount_a_pod(state):
    state.loads[0].in_flight += 1


def miscount_a_cell(state):
    state.residency.home(0).cells["legal"].in_flight += 1


def forget_a_gpu_copy(state):
    del state.residency.home(0).shadow.gpu["legal"]


def forget_a_host_copy(state):
    del state.residency.home(0).shadow.cpu["legal"]


def believe_two_stories(state):
    state.residency.home(0).cells["legal"].tier = Tier.DISK


def believe_in_host_memory(state):
    home = state.residency.home(0)
    del home.shadow.gpu["legal"]
    home.cells["legal"].tier = Tier.DISK


def leave_the_queue_column(state):
    state.columns.queue[0] = 7.0


def pass_one(state):
    state.columns.gpu[0] = 1.5


def leave_the_slots_column(state):
    state.columns.free_slots[0] = 3.0


def leave_a_code(state):
    state.columns.adapters["legal"][0] = int(Tier.GPU_IDLE)


def leave_a_loading_code(state):
    state.columns.adapters["code"][0] = int(Tier.CPU)


def accept_what_is_refused(state):
    state.residency.registry.learn(0, ["code"])


def invent_a_code(state):
    state.columns.adapter_row("nobody")[0] = int(Tier.CPU) | (1 << SOURCE_SHIFT)
    state.residency.registry.declare("nobody")


def hold_and_dispatch(state):
    state.flights["r4"].row = 0
    state.loads[0].in_flight += 1
    state.residency.home(0).cells["code"].in_flight += 1
    state.refresh(0)


def hold_for_nobody(state):
    state.holds.add("r4", 5, until=1.0)


def forget_a_request(state):
    state.holds.remove("r4")


def forget_a_block(state):
    del state.prefixes._holders[1]


def pass_a_bound(state):
    state.prefixes._bounds[0] = 1


def forget_a_load(state):
    state.residency._loads._cells.clear()


def miscount_loads(state):
    state.residency.home(0).loading = 2


def miscount_pods_that_load(state):
    state.residency.rows_loading = 0


def forget_a_use(state):
    del state.residency.home(0).in_use["legal"]


def wait_for_two_things(state):
    state.holds.add("r5", 0, until=1.0)


def wait_and_dispatch(state):
    state.flights["r5"].row = 0
    state.loads[0].in_flight += 1
    state.refresh(0)


def wait_behind_nobody(state):
    state.queues._flows.clear()


def leave_the_slots_left(state):
    state.columns.slots_left[0] = 4.0


def leave_a_closed_budget(state):
    state.gates._closed = False


def take_slots_away(state):
    state.residency.resize(0, gpu_slots=1, cpu_slots=9)
    state.refresh(0)


def clear_a_slot_for_nobody(state):
    state.turns._turns[0] = ("legal", "code")


def clear_a_slot_nowhere(state):
    state.turns._turns[7] = ("legal", "code")


def list_an_adapter_that_does_not_load(state):
    state.residency._loads._cells["legal"] = {}


def oversleep(state):
    state.residency._loads.next_due = 99.0


def miscount_names(state):
    state.residency.registry._accepting["legal"] += 1


def miscount_pods_asked(state):
    state.residency.registry._unasked += 1


BREAKS = {
    lose_an_outcome: "6 arrivals, but 0 ended and 5 in flight",
    miscount_tiers: "3 dispatched, but 4 by tier",
    miscount_a_pod: "row 0: counts 4 in flight, flights say 3",
    miscount_a_cell: "row 0, legal: counts 2, flights say 1",
    forget_a_gpu_copy: "a: legal is believed on the GPU, its shadow is not",
    forget_a_host_copy: "a: legal is on the GPU but not in host memory",
    believe_two_stories: "a: legal is disk, its shadow is on the GPU",
    believe_in_host_memory: "a: legal is disk",
    leave_the_queue_column: "row 0: queue column is old",
    pass_one: "row 0: GPU utilisation 1.5 is not a share",
    leave_the_slots_column: "row 0: free slots column is old",
    leave_a_code: "row 0, legal: code gpu_idle",
    leave_a_loading_code: "row 0, code: code cpu, cell loading",
    accept_what_is_refused: "row 0, legal: code gpu_serving, the pod does not accept it",
    invent_a_code: "row 0, nobody: code cpu, nothing is known",
    hold_and_dispatch: "r4: held and dispatched at once",
    hold_for_nobody: "r4: held for row 5, which has no pod",
    forget_a_request: "r4: neither held nor dispatched; nothing will wake it",
    forget_a_block: "prefix index: holders differ from the pods' own lists",
    pass_a_bound: "row 0: 2 blocks",
    forget_a_load: r"cells say \[\('code', 0\)\] load, the list says \[\]",
    miscount_loads: "a: counts 2 loads, cells say 1",
    miscount_pods_that_load: "counts 0 pods that load, cells say 1|0 pods load, of 1 that may",
    forget_a_use: r"a: \['code'\] are in use, cells say|row 0: pressure and slots left",
    wait_for_two_things: "r5: waits for a place and for a load at once",
    wait_and_dispatch: "r5: waits and is dispatched at once",
    wait_behind_nobody: "flows and waiters differ",
    leave_the_slots_left: "row 0: pressure and slots left are",
    leave_a_closed_budget: "1 pods load, of 1 that may",
    take_slots_away: "a: requests for 2 adapters in flight, it has 1 slots",
    clear_a_slot_for_nobody: "row 0: clears a slot for legal, for which nobody waits",
    clear_a_slot_nowhere: "row 7: clears a slot for legal, and has no pod",
    oversleep: "a load ends at 0.7, nobody looks before 99.0",
    miscount_names: "registry: counts differ from the pods' own lists",
    miscount_pods_asked: "2 pods counted as unasked",
}


@pytest.mark.parametrize("damage", BREAKS)
def test_each_check_says_what_differs(book, damage):
    book.fleet.check()
    damage(book.fleet.state)
    with pytest.raises(AssertionError, match=BREAKS[damage]):
        book.fleet.check()
