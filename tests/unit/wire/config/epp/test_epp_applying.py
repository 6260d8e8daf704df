"""What a file changes in the settings."""

from epp_kit import FILES, HEAD, file, parse

from lorapick.model.settings import Settings
from lorapick.wire.config.epp import with_endpoint_picker


def test_filters_keep_their_order_and_fallbacks_come_from_the_picker():
    picker = file("baseline-tokens")
    assert [each.name for each in picker.profiles.decode.filters] == ["sticky"]
    changed = with_endpoint_picker(Settings(), picker)
    assert changed.picking.fallbacks == 2
    one = HEAD + "plugins: [{type: random-picker, parameters: {maxNumOfEndpoints: 1}}]"
    assert with_endpoint_picker(Settings(), parse(one)).picking.fallbacks == 0
    assert with_endpoint_picker(Settings(), file("lora")).picking.fallbacks == 2


def test_pods_from_a_file():
    picker = file("files")
    assert with_endpoint_picker(Settings(), picker).discovery.file == "endpoints.yaml"
    nested = (FILES / "files.yaml").read_text().replace("{pluginRef: pods}", "{endpoints: {pluginRef: pods}}")
    assert parse(nested).endpoints == "endpoints.yaml"


def test_the_engine_of_pods_that_do_not_say():
    text = HEAD + "plugins: [{type: core-metrics-extractor, parameters: {defaultEngine: trtllm-serve}}]"
    assert with_endpoint_picker(Settings(), parse(text)).default_engine == "trtllm"
    triton = text.replace("trtllm-serve", "triton-tensorrt-llm")
    assert with_endpoint_picker(Settings(), parse(triton)).default_engine == "triton"
