"""Profiles: order, weights, what is there by default."""

from epp_kit import HEAD, file, parse, scorers


def test_weights_are_one_unless_they_are_written():
    assert set(scorers(file("lora").profiles.decode).values()) == {1.0}


def test_profiles_by_default_have_one_of_everything():
    profile = file("plain").profiles.decode
    assert [each.name for each in profile.filters] == ["hard", "context-length-aware", "utilization-filter"]
    assert list(scorers(profile)) == ["load-aware-scorer", "no-hit-lru-scorer", "context-length-aware"]
    assert profile.picker.type == "random-picker"
    assert profile.name == "default"


def test_a_picker_of_the_file_serves_profiles_without_one():
    text = HEAD + "plugins: [{type: random-picker, name: r}, {type: queue-scorer}]\n"
    assert (
        parse(
            text + "schedulingProfiles: [{name: a, plugins: [{pluginRef: queue-scorer}]}]"
        ).profiles.decode.picker.name
        == "r"
    )
