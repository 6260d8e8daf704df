"""Both arms on fleets that play: what is observed is routed as the baseline routes, and what would be is near to it."""

from msgspec.structs import replace
from sim_helpers import SCENARIO

from lorapick.core.arms_report import report
from lorapick.core.picking.policies import POLICIES
from lorapick.model.arms import Arm, ArmsReport, Mode, ModeKind
from lorapick.model.effects import Dispatch, Load, Register, Touch, Unload
from lorapick.sim.build import arrivals_of, world_of
from lorapick.sim.scenario import Scenario
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

THRASHING = SCENARIO.replace("pods: 2, slots: 2", "pods: 4, slots: 2").replace("count: 4", "count: 10")
OBSERVE = Mode(kind=ModeKind.OBSERVE, route="round-robin")


def scenario(mode: Mode, text: str = THRASHING) -> Scenario:
    """A scenario whose picker runs in a mode."""
    parsed = parse_scenario(text.encode(), file="s.yaml", policies=POLICIES)
    return replace(parsed, settings=replace(parsed.settings, mode=mode))


def play(mode: Mode, *, policy: str = "weighted", text: str = THRASHING) -> tuple[list[bytes], World, list[object]]:
    """Lines of time, request and pod in the order of dispatch; the world; commands that pods got."""
    played = scenario(mode, text)
    world = world_of(played, policy=policy, seed=3, observer=Tally(start=0.0, window=1.0))
    world.check_every = 20
    lines: list[bytes] = []
    told: list[object] = []

    def heard(event, effects) -> None:
        for effect in effects:
            if isinstance(effect, Dispatch):
                lines.append(f"{event.t!r} {effect.request_id} {effect.target.pod}\n".encode())
            told.extend([effect] if isinstance(effect, Load | Unload | Register | Touch) else [])

    world.heard = heard
    world.run(arrivals_of(played, 3))
    return lines, world, told


def reported(world: World) -> ArmsReport:
    return report(world.fleet.state.arms, world.settings, now=world.kernel.now)


def hit_ratio(world: World, arm: Arm) -> float:
    (figures,) = [each for each in reported(world).arms if each.arm is arm]
    assert figures.hit_ratio is not None
    return figures.hit_ratio.value


def test_what_is_only_observed_is_routed_as_the_baseline_routes_to_the_byte():
    text = THRASHING + "settings: {scrape: {interval: 500ms}}\n"  # whichever policy looks
    for baseline in ("round-robin", "gie-default", "random", "least-loaded"):
        alone, _, _ = play(Mode(), policy=baseline, text=text)
        beside, _, _ = play(replace(OBSERVE, route=baseline), text=text)
        assert b"".join(beside) == b"".join(alone)
        assert len(beside) > 300


def test_what_would_have_hit_lies_between_what_hits_and_what_hits_where_it_is_in_force():
    """Asked at pods that the baseline keeps in disorder: near where slots are many, far below where pods thrash."""
    for slots, near in ((2, 0.35), (8, 0.06)):
        text = SCENARIO.replace("pods: 2, slots: 2, cpu_slots: 4", f"pods: 4, slots: {slots}, cpu_slots: 8")
        text = text.replace("count: 4", "count: 10")
        _, observing, _ = play(OBSERVE, text=text)
        _, enforcing, _ = play(replace(OBSERVE, kind=ModeKind.PERCENT, percent=100.0), text=text)
        would = reported(observing).would.hit_ratio
        assert would is not None
        assert hit_ratio(observing, Arm.OBSERVED) < would.value < hit_ratio(enforcing, Arm.ENFORCED)
        assert hit_ratio(enforcing, Arm.ENFORCED) - would.value < near


def test_half_of_the_requests_share_the_pods_and_nothing_is_lost():
    lines, world, told = play(replace(OBSERVE, kind=ModeKind.PERCENT, percent=50.0))
    found, tally = reported(world), world.fleet.state.tally
    assert [figures.arm for figures in found.arms] == [Arm.ENFORCED, Arm.OBSERVED]
    assert sum(figures.requests for figures in found.arms) == tally.arrivals == sum(tally.outcomes.values())
    assert len(lines) == tally.dispatched
    for figures in found.arms:
        assert sum(figures.outcomes.values()) == figures.requests
        assert sum(figures.by_tier.values()) <= figures.requests
        assert abs(figures.requests - tally.arrivals / 2) < 2.6 * (tally.arrivals / 4) ** 0.5
    assert found.would.decisions == found.arms[1].requests
    assert told == []


def test_pins_are_shown_and_nobody_is_told_while_requests_are_observed():
    text = THRASHING + "pins: [{adapters: {top: 2}, replicas: 3}]\nsettings: {placement: {enabled: true}}\n"
    _, acting, told = play(Mode(), text=text)
    _, observing, silent = play(OBSERVE, text=text)
    assert told
    assert silent == []
    assert observing.fleet.state.placement.wanted
    assert acting.fleet.state.placement.acts
