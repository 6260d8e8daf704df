"""The books of arbitrary courses: parts add up to latency, stays to slots, charges to what requests say."""

import pytest
from hypothesis import settings as hypothesis_settings
from test_fleet_machine import FleetMachine

from lorapick.core.ledger.bookkeeper import Bookkeeper
from lorapick.core.ledger.charging import LoadIndex, charges
from lorapick.core.ledger.conservation import Watched, conservation
from lorapick.model import events
from lorapick.model.ledger import LoadRow, OccupancyRow, RequestRow, ResidencyRow
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier

CLOSE = 1e-6


class LedgerMachine(FleetMachine):
    """The same events, with books kept; and with a second, simple account of who loaded when."""

    def keep(self):
        """Books are kept from the first event after the beginning on: pods are there, and nothing is loaded."""
        self.books = Bookkeeper()
        self.requests, self.loads, self.stays, self.counts = [], {}, {}, []
        self.course = []
        """(time, pod, adapter, whether it loads now)."""
        fleet, apply = self.book.fleet, self.book.fleet.apply

        def applied(event, now):
            effects = apply(event, now)
            self.course += [(c.t, c.pod, c.adapter, c.after is Tier.LOADING) for c in fleet.changes]
            self.take(self.books.observe(event, effects, changes=fleet.changes))
            return effects

        fleet.apply = applied

    def do(self, kind, **fields):
        if not hasattr(self, "books"):
            self.keep()
        self.book.apply(kind, **fields)
        self.note()

    def take(self, rows):
        for row in rows:
            match row:
                case RequestRow():
                    self.requests.append(row)
                    self.adds_up(row)
                case LoadRow():
                    self.loads[row.id] = row
                case ResidencyRow():
                    self.stays[row.id] = row
                case OccupancyRow():
                    self.counts.append(row)
                    used = sum(stay.since <= row.t and stay.until is None for stay in self.stays.values())
                    assert row.used == used == self.in_slots()
                    assert row.slot_seconds == pytest.approx(self.slot_seconds(row.t), abs=CLOSE)

    def in_slots(self):
        """What the core itself believes to be in slots, or on its way."""
        homes = self.book.fleet.state.residency.homes()
        return sum(cell.tier >= Tier.LOADING for home in homes for cell in home.cells.values())

    def slot_seconds(self, now):
        return sum((now if stay.until is None else stay.until) - stay.since for stay in self.stays.values())

    def adds_up(self, row):
        named = (row.queue, row.load_wait, row.drain, row.served)
        assert min(named) >= 0.0
        assert sum(named) == pytest.approx(row.ended - row.arrived, abs=CLOSE)
        assert row.load_wait >= row.load_wait_held >= 0.0
        if row.dispatched is not None:
            waited, drained = self.account(row)
            assert row.load_wait - row.load_wait_held == pytest.approx(waited, abs=CLOSE)
            assert row.drain == pytest.approx(drained, abs=CLOSE)
        assert (row.drain_load is None) == (row.drain == 0.0)

    def account(self, row):
        """The same by walking through everything that its pod loaded."""
        loading, waited, drained, at = {}, 0.0, 0.0, row.dispatched
        course = [step for step in self.course if step[1] == row.pod and step[0] <= row.ended]
        for t, _, adapter, begins in [*course, (row.ended, row.pod, None, False)]:
            span = max(0.0, min(t, row.ended) - at)
            if row.adapter in loading and row.adapter is not None:
                waited += span
            elif loading:
                drained += span
            at = max(at, t)
            loading.pop(adapter, None)
            if begins:
                loading[adapter] = True
        return waited, drained

    def teardown(self):
        if not hasattr(self, "books"):
            return
        self.pass_time(100.0)
        for request_id in sorted(self.open):
            self.do(events.RequestEnded, request_id=request_id, outcome=Outcome.SERVED)
        assert self.books.open_requests == 0
        state = self.book.fleet.state
        assert len(self.requests) == state.tally.arrivals
        index = LoadIndex(self.loads.values())
        for row in self.requests:
            charged = [*charges(row, index)]
            waited = sum(charge.seconds for charge in charged if charge.waited)
            held = 0.0 if row.load is not None else row.load_wait_held  # its load was over by then, or never was
            assert waited + held == pytest.approx(row.load_wait, abs=CLOSE)
            assert sum(charge.seconds for charge in charged if not charge.waited) == pytest.approx(row.drain, abs=CLOSE)
        self.conserved()

    def conserved(self):
        """Over windows that cut what is open."""
        end = self.book.now
        for since, until in ((0.0, end), (end / 3, end / 2)):
            if until > since:
                held = conservation([*self.stays.values()], [], watched=[Watched(0.0, end)], since=since, until=until)
                cut = [
                    min(end if stay.until is None else stay.until, until) - max(stay.since, since)
                    for stay in self.stays.values()
                ]
                used = sum(length for length in cut if length > 0)
                assert (held.slots_in_use or 0.0) * (until - since) == pytest.approx(used, abs=CLOSE)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = hypothesis_settings(max_examples=6, stateful_step_count=40, deadline=None)
