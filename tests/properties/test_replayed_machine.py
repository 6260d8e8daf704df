"""Whatever happened to a fleet, its event log leads to the same decisions again."""

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from test_fleet_machine import FleetMachine

from lorapick.model import events
from lorapick.sim.replay import replay
from lorapick.testing import strategies as given
from lorapick.wire.eventlog import LineEncoder, LogReader, header_of


class ReplayedMachine(FleetMachine):
    """The fleet's own machine; at its end, all that happened goes through a log."""

    @rule(pod=given.pod_names, utilization=st.floats(0, 1))
    def gauge(self, pod, utilization):
        """In place of the fleet's own rule: a number, as exporters' pages are read; JSON has no other."""
        self.do(events.GpuReported, pod=pod, utilization=utilization)

    @property
    def seed(self):
        return self.book.fleet.state.seed

    def teardown(self):
        super().teardown()
        book, encoder = self.book, LineEncoder()
        lines = [encoder.header(header_of(book.settings, seed=self.seed, epoch=0.0))]
        for event, answer in zip(book.events, book.answers, strict=True):
            lines += bytes(encoder.step(event, answer)).splitlines(keepends=True)
        found = replay(LogReader(lines))
        assert found.difference is None
        assert found.events == len(book.events)


TestReplayedMachine = ReplayedMachine.TestCase
TestReplayedMachine.settings = hypothesis_settings(max_examples=30, stateful_step_count=40, deadline=None)
