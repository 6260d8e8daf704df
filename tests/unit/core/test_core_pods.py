"""Discovery, scrapes and KV events."""

from lorapick.model import events
from lorapick.model.adapters import PinSpec
from lorapick.model.pods import GpuSource, LoadedAdapter, SilentWhy
from lorapick.model.reasons import Reason
from lorapick.model.settings import PlacementSettings, ScrapeSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod


def test_a_new_pod_serves_at_once_and_has_its_time_to_report():
    book = Playbook(pods=["a"], adapters=["legal"])
    assert book.arrive("legal") == ["r1 -> a (disk)"]
    book.wait(5.0)
    assert book.verdict("r1", "a").won
    book.appear("b")
    book.wait(1.0)
    assert book.arrive("base") == ["r2 -> b (base)"]
    assert book.verdict("r2", "a").reason is Reason.STALE


def test_a_report_is_good_for_three_stretched_intervals():
    book = Playbook(pods=["a", "b"])
    book.report("a", every=4.0)
    book.report("b", every=0.5)
    book.wait(11.0)
    assert book.arrive("base") == ["r1 -> a (base)"]
    assert book.verdict("r1", "b").reason is Reason.STALE


def test_a_draining_pod_takes_nothing_until_it_appears_again():
    book = Playbook(pods=["a", "b"])
    book.drain("a")
    assert book.arrive("base") == ["r1 -> b (base)"]
    book.report("a")
    assert book.arrive("base") == ["r2 -> b (base)"]
    book.appear("a")
    assert book.arrive("base", subset=("a",)) == ["r3 -> a (base)"]


def test_a_refused_scrape_closes_a_pod_and_a_good_one_opens_it():
    book = Playbook(pods=["a", "b"])
    for why in (SilentWhy.TIMEOUT, SilentWhy.STATUS, SilentWhy.GARBAGE):
        book.silent("a", why)
        assert book.arrive("base", subset=("a",))[0].endswith("-> a (base)")
    book.silent("a", SilentWhy.REFUSED)
    assert book.arrive("base") == ["r4 -> b (base)"]
    assert book.fleet.state.loads[0].detail == "refused"
    book.report("a")
    assert book.arrive("base", subset=("a",)) == ["r5 -> a (base)"]
    assert book.fleet.state.loads[0].detail == ""


def test_what_a_failed_scrape_said_is_kept():
    book = Playbook(pods=["a"])
    book.apply(events.PodSilent, pod="a", why=SilentWhy.STATUS, detail="503")
    assert book.fleet.state.loads[0].detail == "status: 503"


def test_another_address_is_another_process():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.use("legal", "a")
    book.silent("a", SilentWhy.REFUSED)
    book.change(plain_pod("a", address="new:8000"))
    assert (book.tier("a", "legal"), book.free("a")) == ("disk", 4.0)
    assert book.arrive("legal") == ["r1 -> a (disk)"]
    assert book.effects[0].target.address == "new:8000"
    assert book.fleet.state.loads[0].restarts == 1


def test_labels_and_limits_change_in_place():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.apply(events.PinSet, adapter="legal", pin=PinSpec(selector={"tier": "gold"}))
    book.use("legal", "a")
    book.change(plain_pod("a", labels={"tier": "gold"}, max_loras=2))
    assert (book.tier("a", "legal"), book.free("a")) == ("gpu_idle", 1.0)
    book.wait(0.2)
    book.arrive("legal")
    assert book.verdict("r1", "a").pinned
    book.change(plain_pod("a"))
    book.wait(0.2)
    book.arrive("legal")
    assert not book.verdict("r2", "a").pinned


def test_room_that_a_change_makes_is_used():
    book = Playbook(pods=[plain_pod("a", max_num_seqs=1, max_queue=1)], adapters=["legal"])
    book.arrive("legal")
    book.arrive("legal")
    assert book.arrive("legal") == ["r3 waits for a until 1.4"]
    assert book.change(plain_pod("a", max_num_seqs=9)) == ["r3 -> a (loading)"]


def test_a_changed_pod_that_nobody_knew_appears():
    book = Playbook()
    book.change(plain_pod("a"))
    assert book.arrive("base") == ["r1 -> a (base)"]


def test_events_of_unknown_pods_are_ignored():
    book = Playbook(pods=["a"], adapters=["legal"])
    by = events.By.ENGINE
    assert book.drain("ghost") == book.gone("ghost") == book.report("ghost") == book.silent("ghost") == []
    assert book.apply(events.GpuReported, pod="ghost", utilization=0.5) == []
    assert book.apply(events.KvStored, pod="ghost", adapter=None, blocks=(1,)) == []
    assert book.apply(events.KvRemoved, pod="ghost", blocks=(1,)) == []
    assert book.apply(events.KvCleared, pod="ghost") == []
    assert book.apply(events.LoadStarted, pod="ghost", adapters=("legal",), by=by) == []
    assert book.apply(events.LoadSucceeded, pod="ghost", adapter="legal", by=by) == []
    assert book.apply(events.Unloaded, pod="ghost", adapter="legal") == []
    assert book.fleet.state.tally.loads == 0


def test_a_restart_empties_the_belief_and_the_pod_fills_again():
    """Self-healing [R2.5]."""
    book = Playbook(pods=["a", "b"], adapters=["legal"], settings=Settings(placement=PlacementSettings(enabled=False)))
    book.report("a", process_start=100.0, registered=("legal",))
    book.use("legal", "a")
    assert book.arrive("legal", blocks=(1,)) == ["r1 -> a (gpu_idle) else b"]
    assert book.report("a", process_start=100.2) == [], "the page rounds; this is the same process"
    assert book.report("a", process_start=200.0) == ["note pod_restarted pod=a"]
    assert (book.tier("a", "legal"), book.free("a"), book.in_flight("a")) == ("disk", 4.0, 1)
    book.end("r1")
    book.arrive("legal", blocks=(1,), subset=("a",))
    assert book.verdict("r2", "a").terms.kv == 0.0
    assert book.start("r2") == ["note load_ended pod=a adapter=legal from=disk seconds=0"]
    assert book.tier("a", "legal") == "gpu_serving"


def test_a_counter_that_falls_is_a_restart_too():
    """Pages that several processes write together name no start time."""
    book = Playbook(pods=["a"], adapters=["legal"])
    book.report("a", preemptions=5, registered=("legal",))
    book.use("legal", "a")
    assert book.report("a", preemptions=5) == []
    assert book.report("a") == [], "a page without the counter says nothing"
    book.report("a", preemptions=7)
    assert book.report("a", preemptions=0) == ["note pod_restarted pod=a"]
    assert (book.tier("a", "legal"), book.free("a")) == ("disk", 4.0)
    assert book.report("a", preemptions=0) == []


def test_a_restarted_pod_is_asked_again_what_it_accepts():
    book = Playbook(pods=["a", "b"])
    book.report("a", process_start=1.0, registered=("legal",))
    book.report("a", process_start=2.0)
    assert book.tier("a", "legal") == "unregistered"
    book.report("a", process_start=2.0, registered=("legal",))
    assert book.tier("a", "legal") == "disk"


def test_pressure_is_kv_use_while_requests_wait_or_preemptions_rise():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.report("a", kv_usage=0.99)
    assert book.arrive("legal", deadline=1.0) == ["r1 -> a (disk)"]
    book.report("a", kv_usage=0.96, waiting=1)
    assert book.arrive("legal") == ["r2 refused: 503 pressure_critical"]
    book.report("a", kv_usage=0.99, preemptions=5)
    assert book.arrive("legal") == ["r3 -> a (loading)"]
    book.report("a", kv_usage=0.99, preemptions=6)
    assert book.arrive("legal") == ["r4 refused: 503 pressure_critical"]
    book.report("a", kv_usage=0.99, preemptions=6)
    assert book.arrive("legal") == ["r5 -> a (loading)"]


def test_gpu_utilisation_is_the_pods_own_then_dcgm_then_a_stand_in():
    book = Playbook(pods=[plain_pod("a", max_num_seqs=10)], settings=Settings(scrape=ScrapeSettings(stale_after=2.0)))

    def seen():
        book.arrive("base", id=f"look-{book.now}-{len(book.events)}")
        request_id = book.effects[0].request_id
        verdict = book.verdict(request_id, "a")
        book.end(request_id)
        return round(1.0 - verdict.terms.gpu, 6), verdict.gpu_source

    assert seen() == (0.0, GpuSource.STAND_IN)
    book.report("a", running=3)
    assert seen() == (0.3, GpuSource.STAND_IN)
    book.apply(events.GpuReported, pod="a", utilization=0.7)
    assert seen() == (0.7, GpuSource.DCGM)
    book.report("a", gpu_utilization=0.2, gpu_source=GpuSource.POD)
    assert seen() == (0.2, GpuSource.POD)
    book.report("a")
    assert seen() == (0.7, GpuSource.DCGM)
    book.wait(2.1)
    book.report("a", running=1)
    assert seen() == (0.1, GpuSource.STAND_IN), "an exporter that fell silent is not believed for ever"


def test_figures_that_cannot_be_true_are_unknown():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    lies = {"waiting": -3, "running": -1, "gpu_utilization": float("nan"), "kv_usage": 7.0, "memory_pressure": -2.0}
    book.report("a", **lies)
    book.apply(events.GpuReported, pod="a", utilization=float("inf"))
    assert book.queue("a") == 0.0
    assert book.arrive("legal", subset=("a",)) == ["r1 -> a (disk)"]
    assert book.verdict("r1", "a").gpu_source is GpuSource.STAND_IN


def test_the_engine_says_how_many_slots_it_has():
    book = Playbook(pods=["a"], adapters=["legal", "code"])
    book.use("legal", "a")
    book.report("a", max_loras=1)
    assert book.free("a") == 0.0
    book.use("code", "a")
    assert book.tier("a", "legal") == "cpu"


def test_kv_events_change_the_prefix_index():
    book = Playbook(pods=["a", "b"])

    def share(pod):
        book.arrive("base", id=f"look-{len(book.events)}", blocks=(1, 2, 3, 4), subset=())
        return dict(book.fleet.state.prefixes.match((1, 2, 3, 4))).get(book.fleet.state.columns.row_of[pod], 0.0)

    book.apply(events.KvStored, pod="b", adapter=None, blocks=(1, 2, 3))
    assert (share("a"), share("b")) == (0.0, 0.75)
    book.apply(events.KvRemoved, pod="b", blocks=(3,))
    assert share("b") == 0.5
    book.apply(events.KvCleared, pod="b")
    assert share("b") == 0.0
    book.report("b", gpu_blocks=2)
    book.apply(events.KvStored, pod="b", adapter=None, blocks=(1, 2, 3))
    assert share("b") == 0.5


def test_a_load_that_a_report_shows_to_be_over_is_told():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.arrive("legal")
    book.now = 0.2
    there = (LoadedAdapter(name="legal", on_gpu=True),)
    assert book.report("a", loaded=there) == ["note load_ended pod=a adapter=legal from=disk"]


def test_a_freed_row_is_used_again():
    book = Playbook(pods=["a", "b"], adapters=["legal"], settings=Settings(placement=PlacementSettings(enabled=False)))
    book.use("legal", "a")
    book.arrive("legal", blocks=(1,), subset=("a",))
    book.gone("a")
    book.appear("c")
    columns = book.fleet.state.columns
    assert columns.row_of == {"b": 1, "c": 0}
    assert (book.tier("c", "legal"), book.free("c"), book.queue("c")) == ("disk", 4.0, 0.0)
    assert book.fleet.state.prefixes.match((1,)) == {}
