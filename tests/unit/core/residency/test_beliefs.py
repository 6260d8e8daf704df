"""What is believed, with what spoke of it, and how a record of use changes it."""

from lorapick.model import events
from lorapick.model.requests import Outcome
from lorapick.model.settings import AdmissionSettings, BudgetSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def two_slots(*adapters):
    """A pod that is sent more adapters than it has slots: nobody holds them back."""
    pods = [plain_pod("pod", max_loras=2, max_cpu_loras=3)]
    settings = Settings(admission=AdmissionSettings(slot_budget=False), budgets=BudgetSettings(loads_at_once=9))
    return Playbook(pods=pods, adapters=adapters or ["a", "b", "c", "d"], settings=settings)


def told(book):
    """Adapter, tier, source, last evidence and its kind."""
    return [
        (b.adapter, b.tier.word, b.source.value, b.last_evidence, b.evidence and b.evidence.value)
        for b in book.fleet.state.residency.beliefs()
    ]


def tiers(book, names="abcd"):
    return [book.tier("pod", name) for name in names]


def test_each_kind_of_evidence_is_named():
    book = two_slots()
    book.use("a", "pod")
    book.wait(1.0)
    book.apply(events.KvStored, pod="pod", adapter="b", blocks=())
    book.arrive("c")
    assert told(book) == [
        ("a", "cpu", "inferred", 0.0, "answer"),
        ("b", "gpu_idle", "inferred", 1.0, "kv_event"),
        ("c", "loading", "inferred", None, None),
    ]
    book.report("pod", in_flight_adapters=("c",))
    assert told(book)[2] == ("c", "loading", "inferred", 1.0, "scrape"), "begun at that instant: not over yet"
    book.apply(events.LoadSucceeded, pod="pod", adapter="d", by=events.By.CONTROLLER)
    assert told(book)[3] == ("d", "gpu_idle", "commanded", 1.0, "command")
    book.report("pod", loaded=())
    assert told(book)[0] == ("a", "disk", "reported", 1.0, "list")


def test_a_stored_block_ends_a_load_and_releases_its_followers():
    book = two_slots()
    book.arrive("a", stream=True)
    book.wait(0.25)
    assert book.apply(events.KvStored, pod="pod", adapter="a", blocks=()) == [
        "note load_ended pod=pod adapter=a from=disk seconds=0.25"
    ]
    assert book.tier("pod", "a") == "gpu_serving"
    assert book.apply(events.KvStored, pod="ghost", adapter="a", blocks=()) == []


def test_after_a_start_of_ours_the_pods_record_of_use_fills_the_shadow():
    book = two_slots()
    book.report("pod", used=("d", "a", "b", "c"), in_flight_adapters=())
    assert tiers(book) == ["cpu", "gpu_idle", "gpu_idle", "disk"]
    assert book.free("pod") == 0.0
    book.use("d", "pod")
    assert tiers(book) == ["disk", "cpu", "gpu_idle", "gpu_idle"], "the record's order says who has to go"


def test_a_record_of_use_does_not_move_what_is_busy_or_under_way():
    book = two_slots()
    book.use("a", "pod")
    book.arrive("a", id="long")
    book.arrive("b", id="new")
    book.wait(0.5)
    book.report("pod", used=("b", "c", "d"))
    assert tiers(book) == ["gpu_serving", "loading", "disk", "cpu"]


def test_traffic_of_others_is_seen_in_the_record():
    book = two_slots()
    book.use("a", "pod")
    book.use("b", "pod")
    book.wait(1.0)
    book.report("pod", used=("a", "b", "c"), in_flight_adapters=())
    assert tiers(book) == ["cpu", "gpu_idle", "gpu_idle", "disk"]
    book.wait(1.0)
    book.report("pod", used=(), in_flight_adapters=())
    assert tiers(book) == ["cpu", "gpu_idle", "gpu_idle", "disk"]


def test_a_slot_that_falls_idle_goes_to_who_waits_longest():
    book = two_slots()
    for name in "ab":
        book.arrive(name, id=name)
        book.start(name)
    book.arrive("c", id="c")
    book.arrive("d", id="d")
    assert tiers(book) == ["gpu_serving", "gpu_serving", "loading", "loading"]
    book.end("b", status=200)
    assert tiers(book) == ["gpu_serving", "cpu", "loading", "loading"]
    book.wait(0.75)
    assert tiers(book) == ["gpu_serving", "cpu", "gpu_serving", "loading"], "who has no slot yet is not there"
    book.end("d", Outcome.ABANDONED)
    assert tiers(book) == ["gpu_serving", "cpu", "gpu_serving", "disk"], "nobody waits for it: it never loads"


def test_activity_that_our_own_requests_explain_ends_with_them():
    book = two_slots()
    book.arrive("a", id="a")
    book.wait(0.5)
    book.report("pod", in_flight_adapters=("a",))
    book.end("a", status=200)
    assert book.tier("pod", "a") == "gpu_idle"
    book.wait(0.5)
    book.report("pod", in_flight_adapters=("a",))
    assert book.tier("pod", "a") == "gpu_serving", "somebody else's request"


def test_a_record_that_our_own_requests_explain_does_not_age_what_a_command_loaded():
    book = two_slots()
    book.report("pod", used=())
    book.use("a", "pod")
    book.wait(0.25)
    book.apply(events.LoadSucceeded, pod="pod", adapter="d", by=events.By.CONTROLLER)
    book.wait(0.25)
    book.report("pod", used=("a",))
    book.use("b", "pod")
    assert tiers(book) == ["cpu", "gpu_idle", "disk", "gpu_idle"], "the command came after the last use of a"
