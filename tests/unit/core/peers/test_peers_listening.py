"""What peers say counts at once and not for long; whatever the store does, requests go on."""

from peers_kit import PEERS, answer, claims, picker

from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.alerts import Alert
from lorapick.model.effects import ReleaseClaim
from lorapick.model.reasons import Reason
from lorapick.model.settings import LoadTimes, Settings
from lorapick.model.tiers import Source


def tell(book, peer="two", **fields):
    return book.apply(events.PeerReported, peer=peer, **fields)


def load_of(book, pod):
    columns = book.fleet.state.columns
    return columns.load[columns.row_of[pod]]


def cell(book, pod, name="legal"):
    state = book.fleet.state
    return state.residency.home(state.columns.row_of[pod]).cells[name]


def test_loads_of_peers_are_followed():
    book = picker()
    tell(book, loads={"b": ("legal",)})
    assert cell(book, "b").source is Source.PEER
    assert book.arrive("legal") == ["r1 -> b (loading) else a"] and claims(book) == []
    told = tell(book, loads={})
    assert told == ["note load_ended pod=b adapter=legal from=disk"]
    assert book.arrive("legal") == ["r2 -> b (gpu_serving) else a"]


def test_what_the_pod_reports_beats_what_a_peer_says():
    book = picker()
    tell(book, loads={"b": ("legal",)})
    book.wait(0.2)
    book.report("b", in_flight_adapters=("legal",), running_adapters=("legal",))
    assert cell(book, "b").tier.on_gpu


def test_requests_of_peers_count_between_scrapes_and_not_twice():
    book = picker()
    tell(book)
    book.report("a")
    book.now += 0.1
    tell(book, in_flight={"a": 3})
    assert (load_of(book, "a"), load_of(book, "b")) == (3.0, 0.0)
    book.now += 0.1
    book.report("a", running=3)
    assert load_of(book, "a") == 3.0
    book.now += 0.1
    tell(book, in_flight={"a": 1})
    assert load_of(book, "a") == 1.0
    book.report("a", running=1, since=book.now + 0.0)
    assert load_of(book, "a") == 1.0


def test_a_silent_peer_counts_for_nothing():
    book = picker()
    tell(book, loads={"b": ("code",)}, in_flight={"a": 3}, pins={"legal": PinSpec(replicas=2)})
    assert book.fleet.state.all_pins == {"legal": PinSpec(replicas=2)}
    book.arrive("code")
    told = book.wait(2.0)
    assert any(line.startswith("note peer_silent peer=two") for line in told)
    assert load_of(book, "a") == 0.0 and book.fleet.state.all_pins == {}


def test_a_mark_of_a_silent_peer_is_taken_back_unless_somebody_followed():
    book = picker(load_times=LoadTimes(disk=30.0))
    tell(book, loads={"b": ("legal",), "a": ("code",)})
    book.arrive("legal")
    book.wait(2.5)
    assert book.tier("b", "legal") == "loading" and cell(book, "b").source is Source.INFERRED
    assert book.tier("a", "code") == "disk"


def test_no_answer_in_time_and_the_picker_goes_on_alone():
    book = picker()
    book.arrive("legal")
    assert book.wait(0.06) == ["r1 -> a (disk) else b"]
    assert book.fleet.state.peers.claims.counts["timeout"] == 1
    # The late answer is ours as long as we load.
    assert answer(book, 1) == []
    book.wait(1.0)
    assert not book.fleet.state.peers.claims.ours


def test_a_late_grant_that_nobody_needs_is_given_back():
    book = picker()
    book.arrive("legal")
    book.end("r1")
    book.wait(5.0)
    answer(book, 1)
    assert [type(each) for each in claims(book)] == [ReleaseClaim]


def test_a_claim_is_given_back_when_the_load_is_over_or_nobody_wants_it():
    book = picker()
    book.arrive("legal")
    answer(book, 1)
    book.start("r1")
    assert [type(each) for each in claims(book)] == [ReleaseClaim]
    book.arrive("code")
    book.end("r2")
    answer(book, 2, adapter="code")
    assert [type(each) for each in claims(book)] == [ReleaseClaim]


def test_a_lost_store_lets_all_go_and_is_an_alert():
    book = picker()
    book.arrive("legal")
    told = book.apply(events.PeersReached, up=False, why="gone")
    assert told == ["note peers_reachable up=no why=gone", "r1 -> a (disk) else b"]
    assert book.arrive("code")[0].startswith("r2 -> ") and claims(book) == []
    for _ in range(6):
        book.wait(1.0)
    assert book.fleet.state.alerts.standing[Alert.PEERS_DOWN].facts["why"] == "gone"
    book.apply(events.PeersReached, up=True)
    for _ in range(40):
        book.wait(1.0)
    assert Alert.PEERS_DOWN not in book.fleet.state.alerts.standing


def test_other_settings_end_it():
    book = picker()
    tell(book, in_flight={"a": 3})
    book.arrive("legal")
    settings = Settings(adapters=book.settings.adapters)
    told = book.apply(events.ConfigChanged, settings=settings)
    assert "r1 -> b (disk) else a" in told or "r1 -> a (disk) else b" in told
    assert not book.fleet.state.peers.marks.peers and not book.fleet.state.peers.claims.by_key
    assert PEERS.claim_timeout == 0.05


def test_an_unknown_pod_of_the_owner_holds_nobody_up():
    book = picker()
    book.arrive("legal")
    assert answer(book, 1, granted=False, owner="two", pod="elsewhere") == ["r1 -> a (disk) else b"]
    assert Reason.HELD_FOR_CLAIM.value == "held_for_claim"
