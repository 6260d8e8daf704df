"""Invariants as code: checked after each event in tests and simulations, sampled live.

In: the fleet's state. Out: nothing, or an AssertionError that says what differs from what.
"""

from collections import Counter
from collections.abc import Iterable

from lorapick.core.columns import TIER_BITS, PodColumns
from lorapick.core.residency.checks import check as check_residency
from lorapick.core.state import FleetState
from lorapick.model.tiers import Tier


def check(state: FleetState) -> None:
    """Check everything below."""
    outcomes_add_up(state)
    flights_match_pods(state)
    residency_is_sane(state)
    columns_match(state)
    holds_are_bounded(state)
    slots_are_kept(state)
    turns_are_wanted(state)
    state.gates.check()
    state.queues.check()
    state.alerts.check()
    state.prefixes.check()
    check_residency(state.residency)
    state.unloads.check(state.loads)
    placement_is_of_pods(state)
    state.peers.claims.check()
    peers_count(state)
    signals_follow_residency(state)


def peers_count(state: FleetState) -> None:
    """Pods count requests of peers as these say, and somebody looks in time whether peers have fallen silent."""
    marks = state.peers.marks
    for row, load in state.loads.items():
        said = marks.on(state.columns.targets[row].pod)
        assert said in ((load.others, load.others_delta), (0, 0)) or load.others == 0, f"row {row}: peers say {said}"
    for name, peer in marks.peers.items():
        assert marks.next_due <= peer.heard + marks.stale_after, f"nobody looks in time whether {name} is silent"


def signals_follow_residency(state: FleetState) -> None:
    """Residencies that have not ended, as the signals have them, are of what is in slots or on its way there."""
    for home in state.residency.homes():
        there = [name for name, cell in home.cells.items() if cell.tier >= Tier.LOADING]
        track = state.signals.pods.get(home.name)
        said = [*track.stays.begun] if track is not None else []
        assert sorted(there) == sorted(said), f"{home.name}: {sorted(there)} are in slots, signals say {sorted(said)}"


def outcomes_add_up(state: FleetState) -> None:
    """Served + failed + rejected + abandoned + in flight = arrivals."""
    ended = sum(state.tally.outcomes.values())
    assert ended + len(state.flights) == state.tally.arrivals, (
        f"{state.tally.arrivals} arrivals, but {ended} ended and {len(state.flights)} in flight"
    )
    by_tier = sum(state.tally.picks_by_tier.values())
    assert by_tier == state.tally.dispatched, f"{state.tally.dispatched} dispatched, but {by_tier} by tier"


def flights_match_pods(state: FleetState) -> None:
    """What pods count in flight is what flights say, by pod and by (pod, adapter)."""
    by_row: Counter[int] = Counter()
    by_cell: Counter[tuple[int, str]] = Counter()
    reserved: Counter[tuple[int, str]] = Counter()
    tokens: Counter[int] = Counter()
    for flight in state.flights.values():
        if flight.row >= 0:
            by_row[flight.row] += 1
            if flight.adapter is not None:
                by_cell[flight.row, flight.adapter.name] += 1
                reserved[flight.row, flight.adapter.name] += flight.reserved
        if flight.standby >= 0:
            assert flight.reserved, f"{flight.request.id}: a fallback keeps a slot, and nobody waits for a prefill"
            assert flight.standby in state.loads, (
                f"{flight.request.id}: row {flight.standby} keeps a slot and has no pod"
            )
            by_row[flight.standby] += 1
            if flight.adapter is not None:
                by_cell[flight.standby, flight.adapter.name] += 1
                reserved[flight.standby, flight.adapter.name] += 1
        if flight.leg is not None and flight.leg.row in state.loads:
            by_row[flight.leg.row] += 1
            tokens[flight.leg.row] += flight.leg.tokens
            if flight.adapter is not None:
                by_cell[flight.leg.row, flight.adapter.name] += 1
    assert state.legs.queued == {row: count for row, count in tokens.items() if count}, "tokens being prefilled differ"
    for row, load in state.loads.items():
        assert load.in_flight == by_row[row], f"row {row}: counts {load.in_flight} in flight, flights say {by_row[row]}"
        for name, cell in state.residency.home(row).cells.items():
            said = by_cell[row, name]
            assert cell.in_flight == said, f"row {row}, {name}: counts {cell.in_flight}, flights say {said}"
            kept = reserved[row, name]
            assert cell.reserved == kept, f"row {row}, {name}: {cell.reserved} reserved, flights say {kept}"
            assert (name in state.residency.home(row).reserved) == (kept > 0), f"row {row}, {name}: list of reserved"


def residency_is_sane(state: FleetState) -> None:
    """The GPU level is inside the host level; tiers and shadow tell one story."""
    for row in state.loads:
        home = state.residency.home(row)
        shadow = home.shadow
        for name in shadow.gpu:
            assert name in shadow.cpu, f"{home.name}: {name} is on the GPU but not in host memory"
        for name, cell in home.cells.items():
            if cell.tier.on_gpu:
                assert name in shadow.gpu, f"{home.name}: {name} is believed on the GPU, its shadow is not"
            elif name in shadow.doubtful:
                assert name in shadow.gpu, f"{home.name}: {name} may be in a slot, and none is kept for it"
                assert cell.tier in (shadow.doubtful[name], Tier.LOADING), f"{home.name}: {name} is {cell.tier.word}"
            elif cell.tier is not Tier.LOADING:
                assert name not in shadow.gpu, f"{home.name}: {name} is {cell.tier.word}, its shadow is on the GPU"
                assert (cell.tier is Tier.CPU) == (name in shadow.cpu), f"{home.name}: {name} is {cell.tier.word}"


def columns_match(state: FleetState) -> None:
    """Queue, slots and residency codes are what their sources say."""
    columns = state.columns
    for row, _ in columns.live():
        load, home = state.loads[row], state.residency.home(row)
        assert columns.queue[row] == load.queue_depth() >= 0, f"row {row}: queue column is old"
        assert columns.load[row] == load.total() >= load.in_flight, f"row {row}: load column is old"
        assert 0 <= columns.gpu[row] <= 1, f"row {row}: GPU utilisation {columns.gpu[row]} is not a share"
        assert columns.free_slots[row] == home.shadow.free, f"row {row}: free slots column is old"
        _follows(columns, row)
        for name, codes in columns.adapters.items():
            tier, cell = Tier(codes[row] & TIER_BITS), home.cells.get(name)
            if not state.residency.registry.accepts(row, name):
                assert tier is Tier.UNREGISTERED, f"row {row}, {name}: code {tier.word}, the pod does not accept it"
            elif cell is None:
                assert tier is Tier.DISK, f"row {row}, {name}: code {tier.word}, nothing is known"
            elif cell.tier.on_gpu:
                serving = bool(cell.in_flight) or cell.active
                assert tier is (Tier.GPU_SERVING if serving else Tier.GPU_IDLE), f"row {row}, {name}: code {tier.word}"
            else:
                assert tier is cell.tier, f"row {row}, {name}: code {tier.word}, cell {cell.tier.word}"
            assert codes[row] == state.residency.code(home, name), f"row {row}, {name}: code {codes[row]} is old"


def slots_are_kept(state: FleetState) -> None:
    """No pick of ours makes a pod serve more adapters at once than it has slots."""
    if not state.gates.on or not state.settings.admission.slot_budget:
        return
    for row in state.loads:
        home = state.residency.home(row)
        own = sum(cell.in_flight > 0 for cell in home.cells.values())
        most = home.shadow.gpu_slots
        assert home.excused or own <= most, f"{home.name}: requests for {own} adapters in flight, it has {most} slots"


def turns_are_wanted(state: FleetState) -> None:
    """Slots are cleared for adapters that somebody waits for, on pods that exist."""
    for row, name in state.turns.turns():
        assert row in state.loads, f"row {row}: clears a slot for {name}, and has no pod"
        assert state.queues.wanted(name), f"row {row}: clears a slot for {name}, for which nobody waits"


def placement_is_of_pods(state: FleetState) -> None:
    """What placement remembers by pod is of pods that exist, and none is told two things at once."""
    placement = state.placement
    tables: dict[str, Iterable[int]] = {
        "keeps": placement.keeps,
        "wanted": placement.wanted,
        "warming": placement.warming,
        "leaving": placement.leaving,
        "commands": placement.commands.under_way,
        "touches": placement.commands.touches,
    }
    for what, table in tables.items():
        gone = [row for row in table if row not in state.loads]
        assert not gone, f"{what}: rows {gone} have no pod"
    for row in placement.commands.under_way:
        assert not state.unloads.busy(row, now=state.now), f"row {row}: is told two things at once"
    for row in placement.warming:
        assert state.columns.gate[row], f"row {row}: warms up and takes traffic"
    for row in placement.leaving:
        assert state.loads[row].draining, f"row {row}: hands over and does not drain"


def _follows(columns: PodColumns, row: int) -> None:
    """What the columns keep of other columns is what follows from these."""
    queue, most = columns.queue[row], columns.max_queue[row]
    shut = queue >= most or columns.gate[row] > 0 or columns.prefill_only[row] > 0
    assert columns.shut[row] == shut, f"row {row}: shut column is old"
    assert columns.room[row] == (1.0 - queue / most if most else 0.0), f"row {row}: room column is old"
    assert columns.idle[row] == 1.0 - columns.gpu[row], f"row {row}: idle column is old"
    assert not (shut and columns.none_shut(float("-inf"))), f"row {row} is shut and counts as open"
    pressed = columns.pressure[row] > 0
    assert not (pressed and columns.none_refuses(0.0)), f"row {row} is under pressure and counts as free of it"
    full = columns.slots_left[row] <= 0
    assert not (full and columns.none_refuses(0.0)), f"row {row} has no slot left and counts as free"


def holds_are_bounded(state: FleetState) -> None:
    """Every held request is in flight with no pod, and will be decided; every unheld one has or had a pod."""
    for request_id, flight in state.flights.items():
        if request_id in state.queues:
            assert flight.row < 0 and flight.waits_since is not None, f"{request_id}: waits and is dispatched at once"
            assert request_id not in state.holds, f"{request_id}: waits for a place and for a load at once"
        elif request_id in state.peers.claims:
            assert flight.row < 0, f"{request_id}: waits for a claim and is dispatched at once"
            assert request_id not in state.holds, f"{request_id}: waits for a claim and for a load at once"
        elif request_id in state.holds:
            assert flight.row < 0 and flight.follow_until is not None, f"{request_id}: held and dispatched at once"
            row = state.holds.row_of(request_id)
            assert row in state.loads, f"{request_id}: held for row {row}, which has no pod"
        else:
            passed = flight.trial is not None and flight.trial.passed
            assert passed or flight.pod is not None, f"{request_id}: neither held nor dispatched; nothing will wake it"
