"""What is said of a file."""

from epp_kit import file

from lorapick.model.disaggregation import Decide
from lorapick.wire.config.epp.further_sections import OLD_VERSION


def test_older_files_load_and_are_told_so():
    picker = file("old")
    assert picker.split.decide is Decide.ALWAYS
    assert picker.profiles.decode.filters[0].parameters == {
        "label": "llm-d.ai/role",
        "values": ("decode", "both"),
        "without": True,
    }
    assert [line.split(":")[0] for line in picker.deprecated] == [
        f"apiVersion {OLD_VERSION}",
        "saturationDetector",
        "parser",
        "plugins[0]",
        "plugins[2]",
        "plugins[3]",
        "plugins[6]",
    ]


def test_what_differs_is_said_by_what_the_profile_has():
    said = {name: " ".join(file(name).differences) for name in ("default", "lora", "files", "flow", "disaggregated")}
    assert "no scorer looks at adapters" in said["default"]
    assert "lora-affinity-scorer sees adapters" in said["lora"]
    assert "a scorer of lorapick is in the profile" in said["files"]
    assert "waits at the picker" in said["flow"] and "waits at the picker" not in said["default"]
    assert "may prefill too" in said["disaggregated"]
