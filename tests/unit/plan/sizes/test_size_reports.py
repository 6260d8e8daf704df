"""What `lorapick plan size` says."""

from lorapick.plan.sizes.adapters import reckoned
from lorapick.plan.sizes.advice import rule_of_thumb, scales, warnings
from lorapick.plan.sizes.asked import asked
from lorapick.plan.sizes.models import read_model
from lorapick.plan.sizes.report import Sized, report


def sized(model="llama-3.1-70b", *, rank=16, alpha=32.0, targets="q,v", dtype="float16", **more):
    base = read_model(model)
    config = asked(base.shape, rank=rank, alpha=alpha, targets=targets, **more)
    return Sized("t", config, reckoned(config, base.shape, dtype=dtype, file="c"), dtype, base)


def warned(**words):
    found = sized(**words)
    return [*warnings(found.size, found.config)]


def test_the_articles_figures_stand_beside_the_exact_ones():
    legal = report(sized())
    assert (legal["parameters"].value, legal["parameters"].article) == (32_768_000, "32.8M")
    assert (legal["bytes (float16)"].value, legal["bytes (float16)"].article) == (65_536_000, "65.6 MB")
    ratio = legal["times an adapter on queries alone"]
    assert (ratio.value, ratio.article, ratio.formula) == (1.5625, "2x", "32,768,000 / 20,971,520")
    code = report(sized(rank=64, alpha=64, targets="q,k,v"))
    assert (code["parameters"].value, code["parameters"].article) == (178_257_920, "178.4M")
    assert (code["bytes (float16)"].value, code["bytes (float16)"].article) == (356_515_840, "356.8 MB")
    assert report(sized("llama-3.1-8b"))["parameters"].article is None
    assert report(sized(dtype="float32"))["bytes (float32)"].article is None


def test_every_figure_has_its_formula_and_source():
    found = report(sized())
    assert found["parameters"].formula == "80 × 16 × (8192 + 8192) (q_proj) + 80 × 16 × (1024 + 8192) (v_proj)"
    assert all(each.formula and each.source for each in found.figures)
    assert all(each.source for each in found.assumptions)
    assert found["base model"].source.endswith("meta-llama/Llama-3.1-70B/blob/main/config.json")


def test_rules_of_thumb():
    assert [rule_of_thumb(names) for names in (["q_proj"], ["v_proj", "q_proj"], ["q_proj", "k_proj", "v_proj"])] == [
        "1x", "2x", "3x",
    ]  # fmt: skip
    assert report(sized(targets="q,k,v,o"))["times an adapter on queries alone"].article == "4x"
    whole = report(sized(targets="all-linear"))["times an adapter on queries alone"]
    assert (whole.value, whole.article) == (9.875, "6-8x")
    assert rule_of_thumb(["up_proj"]) is None


def test_scales_that_should_make_one_look_again():
    assert warned(alpha=32) == []
    assert warned(alpha=33)[0].startswith("alpha/r is 2.0625, above 2: it may overshoot")
    assert warned(alpha=4) == []
    assert warned(alpha=3)[0].startswith("alpha/r is 0.1875, below 0.25: it will hardly act")
    assert warned(alpha=0) == [
        "alpha/r is 0: the adapter changes nothing, though PEFT and engines take it; give an alpha above 0"
    ]
    assert [words[:43] for words in warned(alpha=-2)] == ["alpha/r is -0.125, below 0: what was traine"]
    assert warned(alpha=None) == []
    strong = warned(alpha=32, rslora=True)
    assert (
        strong[0].startswith("alpha/√r is 8, above 2") and strong[1] == "rsLoRA divides by √r: plain alpha/r would be 2"
    )


def test_the_common_shortcut_of_a_fixed_alpha():
    found = [scales(sized(rank=rank, alpha=16).size) for rank in (4, 16, 64)]
    assert found == [(4.0,), (1.0,), (0.25,)]


def test_unknown_stays_unknown():
    fused = report(sized("phi-4", targets="qkv_proj", alpha=None))
    assert fused["times an adapter on queries alone"].value is None
    assert fused["effective alpha/r"].value is None
    assert fused.charts[0].curves[0].name == "all-linear"


def test_experts_and_parts_that_see_are_noted():
    assert "Transformers 4" in report(sized("mixtral-8x7b")).notes[-1]
    assert "text part only" in report(sized("gemma-3-27b")).notes[-1]


def test_bytes_by_type_and_by_rank():
    found = report(sized())
    assert found.tables[1].rows[0] == ("float32", "131,072,000", "131.072 MB")
    curves = {curve.name: curve.values for curve in found.charts[0].curves}
    assert curves["q,v"][found.charts[0].xs.index(16)] == 65.536
    assert [*curves] == ["q", "q,v", "q,k,v", "q,k,v,o", "all-linear"]
