"""What tests of `EndpointPickerConfig` share: files as guides have them, and short ways to read them."""

from pathlib import Path

from lorapick.wire.config.epp import parse_endpoint_picker

FILES = Path(__file__).parent / "files"
HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"


def parse(text):
    return parse_endpoint_picker(text, file="e.yaml")


def file(name):
    return parse((FILES / f"{name}.yaml").read_text())


def scorers(profile):
    return {each.name: each.weight for each in profile.scorers}
