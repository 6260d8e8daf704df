"""Requests as other endpoint pickers count them, and under whose names they are shown."""

import itertools

import pytest
from metrics_kit import Story

from lorapick.live.families_epp import DIALECTS, GATEWAY, ROUTER, SHAPES
from lorapick.live.metrics_epp import MOST_ATTEMPTS, MOST_SERIES, EppMetrics, error_code
from lorapick.model.effects import Effect, Reject
from lorapick.model.events import BodyStarted, RequestArrived, RequestEnded, RequestRefused, ResponseStarted, Ticked
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.testing.published import small_fleet

NEW, OLD, EXTENSION = "llm_d_epp_", "inference_objective_", "inference_extension_"
A = 'model_name="legal",target_model_name="legal"'


class Page(Story):
    """A story, and its samples as text."""

    def ask(self, request_id: str, adapter: str, *effects: Effect, **facts: object) -> Request:
        request = Request(id=request_id, model=adapter, **facts)
        self.tell(RequestArrived, *(effects or (self.dispatch(request_id, adapter),)), request=request)
        return request

    def end(self, request_id: str, outcome: Outcome = Outcome.SERVED, **tokens: int) -> None:
        self.tell(RequestEnded, request_id=request_id, outcome=outcome, status=200, **tokens)

    def shown(self, prefix: str = "") -> dict[str, float]:
        return {
            sample.name + ",".join(f'{key}="{value}"' for key, value in sample.labels.items()).join("{}"): sample.value
            for sample in self.metrics.samples()
            if sample.name.startswith(prefix or (NEW, "inference_"))
        }


@pytest.fixture
def page() -> Page:
    return Page()


def test_a_streamed_request_in_both_dialects(page: Page) -> None:
    page.ask("r", "legal", stream=True, body_bytes=700, fairness_id="acme", priority=2)
    page.t = 0.5
    page.tell(ResponseStarted, request_id="r", status=200)
    page.tell(BodyStarted, request_id="r")
    page.t = 2.5
    page.end("r", prompt_tokens=100, cached_tokens=20, output_tokens=11)
    found = page.shown()
    flow = A + ',fairness_id="acme",priority="2"'
    for name, value in (
        ("request_total", 1),
        ("request_running", 0),
        ("request_duration_seconds_sum", 2.5),
        ("request_size_bytes_sum", 700),
        ("request_streaming_tpot_seconds_sum", 0.2),
        ("request_ntpot_seconds_sum", 2.5 / 11),
        ("request_input_tokens_sum", 100),
        ("request_cached_tokens_sum", 20),
        ("request_output_tokens_sum", 11),
    ):
        assert found[f"{NEW}{name}{{{flow}}}"] == pytest.approx(value), name
    assert found[f'{NEW}request_ttft_seconds_sum{{{flow},streaming="true"}}'] == 0.5
    assert found[f'{OLD}request_total{{{A},priority="2"}}'] == 1
    for name, value in (
        ("request_ttft_seconds_sum", 0.5),
        ("request_tpot_seconds_sum", 0.2),
        ("request_sizes_count", 1),
        ("input_tokens_sum", 100),
        ("prompt_cached_tokens_sum", 20),
        ("output_tokens_sum", 11),
        ("normalized_time_per_output_token_seconds_count", 1),
    ):
        assert found[f"{OLD}{name}{{{A}}}"] == pytest.approx(value), name
    assert found[f'{OLD}running_requests{{model_name="legal"}}'] == 0
    attempt = 'status="success",target_model_name="legal",endpoint_name="p1",namespace="",port="1"'
    assert found[f"{NEW}scheduler_attempts_total{{{attempt}}}"] == 1
    assert found[f"{EXTENSION}scheduler_attempts_total{{{attempt.replace('endpoint_name', 'pod_name')}}}"] == 1


def test_what_is_not_known_has_no_series(page: Page) -> None:
    page.ask("r", "legal")
    page.end("r", output_tokens=1)
    names = {key.split("{")[0] for key in page.shown()}
    assert f"{NEW}request_output_tokens_sum" in names
    for unknown in ("request_input_tokens", "request_cached_tokens", "request_ttft_seconds", "request_size_bytes"):
        assert f"{NEW}{unknown}_sum" not in names
    assert f"{NEW}request_streaming_tpot_seconds_sum" not in names, "one token has no time per token after the first"


def test_a_whole_answer_has_no_time_per_token_but_a_first_byte(page: Page) -> None:
    page.ask("r", "legal")
    page.tell(ResponseStarted, request_id="r", status=200)
    page.tell(BodyStarted, request_id="r")
    page.ask("s", "legal", stream=True)
    page.tell(ResponseStarted, request_id="s", status=200)
    page.tell(BodyStarted, request_id="s")
    page.end("r", output_tokens=9)
    found = page.shown()
    whole = [value for key, value in found.items() if "ttft_seconds_count" in key and 'streaming="false"' in key]
    assert whole == [1]
    assert found[f"{OLD}request_ttft_seconds_count{{{A}}}"] == 2, "one family, without the label"
    assert not [key for key in found if "tpot_seconds_count" in key and "ntpot" not in key]


def test_a_wait_at_the_picker(page: Page) -> None:
    page.ask("r", "legal", page.hold("r", "legal"))
    queue = f'fairness_id="default-flow",priority="0",inference_pool="lorapick",{A}'
    assert page.shown()[f"{NEW}flow_control_queue_size{{{queue}}}"] == 1
    page.t = 0.3
    page.tell(Ticked, page.dispatch("r", "legal"))
    page.t = 1.0
    page.end("r")
    found = page.shown()
    assert found[f"{NEW}flow_control_queue_size{{{queue}}}"] == found[f"{EXTENSION}flow_control_queue_size{{{queue}}}"]
    waited = f'fairness_id="default-flow",priority="0",outcome="Dispatched",inference_pool="lorapick",{A}'
    for prefix in (NEW, EXTENSION):
        assert found[f"{prefix}flow_control_request_queue_duration_seconds_sum{{{waited}}}"] == pytest.approx(0.3)
    duration = [value for key, value in found.items() if key.startswith(f"{NEW}request_duration_seconds_sum")]
    assert duration == [1.0], "it counts from the arrival"
    assert [value for key, value in found.items() if key.startswith(f"{NEW}request_total")] == [1]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [(Reason.DEADLINE, "EvictedTTL"), (Reason.SHED, "RejectedOther"), (None, "EvictedContextCancelled")],
)
def test_waits_that_came_to_nothing(page: Page, reason: Reason | None, outcome: str) -> None:
    page.ask("r", "legal", page.hold("r", "legal"))
    if reason is None:
        page.end("r", Outcome.ABANDONED)
    else:
        page.tell(Ticked, Reject(cause=0, request_id="r", status=503, reason=reason, message="no"))
    ended = [key for key in page.shown(f"{NEW}flow_control") if "duration_seconds_count" in key]
    assert len(ended) == 1
    assert f'outcome="{outcome}"' in ended[0]


def test_errors_by_code(page: Page) -> None:
    page.ask("a", "legal")
    page.end("a", Outcome.FAILED)
    page.ask("b", "legal", Reject(cause=0, request_id="b", status=429, reason=Reason.QUEUE_FULL, message="full"))
    page.tell(RequestRefused, reason=Reason.BODY_INVALID, status=400)
    errors = {
        (sample.labels["model_name"], sample.labels["error_code"]): sample.value
        for sample in page.metrics.samples()
        if sample.name == f"{NEW}request_error_total"
    }
    assert errors == {("legal", "ModelServerError"): 1, ("legal", "ResourceExhausted"): 1, ("unknown", "BadRequest"): 1}
    assert [error_code(status) for status in (403, 404, 413, 503)] == [
        "Forbidden", "NotFound", "BadRequest", "ServiceUnavailable",
    ]  # fmt: skip


def test_names_that_clients_make_up_get_no_series(page: Page) -> None:
    for number in range(50):
        reject = Reject(cause=0, request_id=f"r{number}", status=404, reason=Reason.ADAPTER_UNKNOWN, message="no")
        page.ask(f"r{number}", f"made-up-{number}", reject)
    models = {sample.labels.get("model_name") for sample in page.metrics.samples()} - {None}
    assert models == {"other"}


def test_the_pool_as_published(page: Page) -> None:
    assert not [key for key in page.shown() if "ready" in key or "average" in key]
    page.metrics.show(small_fleet())
    found = page.shown()
    assert found[f'{NEW}ready_endpoints{{name="lorapick"}}'] == 2
    assert found['inference_pool_ready_pods{name="lorapick"}'] == 2
    assert found[f'{NEW}average_queue_size{{name="lorapick"}}'] == 1.5
    assert found[f'{NEW}std_dev_queue_size{{name="lorapick"}}'] == pytest.approx(4.5**0.5)
    assert f'{NEW}std_dev_running_requests{{name="lorapick"}}' in found
    assert not [key for key in found if "std_dev" in key and not key.startswith(NEW)], "the older ones have none"
    assert found['inference_pool_average_kv_cache_utilization{name="lorapick"}'] == 0.3
    assert found[f'{NEW}per_endpoint_queue_size{{name="lorapick",model_server_endpoint="pod-02"}}'] == 3
    assert found['inference_pool_per_pod_queue_size{name="lorapick",model_server_pod="pod-02"}'] == 3
    assert not [key for key in found if "per_pod" in key and "pod-07" in key], "nobody knows what waits there"


@pytest.mark.parametrize("word", DIALECTS)
def test_whose_names_are_shown(word: str) -> None:
    page = Page(compat=word)
    page.ask("r", "legal")
    page.end("r")
    page.metrics.pick_seconds(1e-5)
    names = {sample.name for sample in page.metrics.samples()}
    assert any(name.startswith(NEW) for name in names) is (ROUTER in DIALECTS[word])
    assert any(name.startswith("inference_") for name in names) is (GATEWAY in DIALECTS[word])


class TestBounds:
    def test_many_adapters_and_clients_share_series(self, page: Page) -> None:
        numbers = itertools.count()
        for adapter in range(5000):
            for _ in range(2):
                request_id = f"r{next(numbers)}"
                page.ask(request_id, f"a{adapter}", fairness_id=f"client-{request_id}", priority=adapter % 2)
                page.end(request_id, output_tokens=5)
            if adapter % 500 == 0:
                page.metrics.show(small_fleet())
                page.metrics.take()
        totals = [s for s in page.metrics.samples() if s.name == f"{NEW}request_total"]
        assert len(totals) <= MOST_SERIES + 2
        assert sum(sample.value for sample in totals) == 10_000, "nothing is lost"
        assert sum(v for key, v in page.shown(OLD).items() if key.startswith(f"{OLD}request_total")) == 10_000
        assert len({sample.labels["model_name"] for sample in totals}) > 10

    def test_attempts(self) -> None:
        epp = EppMetrics(DIALECTS["llm-d"])
        for adapter in range(100):
            series = epp.arrived(Request(id="r", model=f"a{adapter}"), f"a{adapter}", label="x")
            for pod in range(20):
                epp.sent(series, pod=f"p{pod}", address=f"[::1]:{8000 + pod}", stream=False)
        epp.freeze(None)
        [attempts] = [family for family in epp.collect() if family.name.endswith("attempts")]
        assert len(attempts.samples) <= MOST_ATTEMPTS + 20
        assert sum(sample.value for sample in attempts.samples) == 2000
        epp.forget_pod("p3")
        epp.freeze(None)
        [attempts] = [family for family in epp.collect() if family.name.endswith("attempts")]
        assert "8003" not in {sample.labels["port"] for sample in attempts.samples}


def test_a_pod_that_came_back_elsewhere_is_one_series() -> None:
    epp = EppMetrics(DIALECTS["llm-d"])
    series = epp.arrived(Request(id="r", model="a"), "a", label="a")
    for host in ("10.0.0.1", "10.0.0.2"):
        epp.sent(series, pod="p", address=f"{host}:8000", stream=False)
    epp.freeze(None)
    [attempts] = [family for family in epp.collect() if family.name.endswith("attempts")]
    assert [(sample.labels["port"], sample.value) for sample in attempts.samples] == [("8000", 2)]


def test_histograms_have_places_for_all_shapes() -> None:
    series = EppMetrics(DIALECTS["both"]).arrived(Request(id="r", model="a"), "a", label="a")
    assert [len(row) for row in series.rows] == [len(shape.bounds) + 2 for shape in SHAPES]
