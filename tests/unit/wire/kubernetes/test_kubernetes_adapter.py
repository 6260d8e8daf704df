"""LoraAdapters; and that the API server's schema says what these readers say."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from objects_kit import JSON

from lorapick.model.adapters import Adapter, AffinityGroup, PinSpec, Schedule
from lorapick.wire.kubernetes.adapter import (
    GROUP,
    KIND,
    MOST_REPLICAS,
    PLACEMENT,
    PLURAL,
    SCHEDULE,
    SPEC,
    VERSION,
    read_adapter,
)
from lorapick.wire.kubernetes.objects import ObjectError
from lorapick.wire.kubernetes.status import AdapterTruth, next_status

CRD = Path(__file__).parents[4] / "deploy" / "crds" / "lorapick-loraadapters.yaml"


def lora_adapter(**spec):
    return {"metadata": {"name": "sql"}, "spec": spec}


def test_an_adapter_that_says_nothing_is_loaded_on_demand():
    found = read_adapter(lora_adapter())
    assert found.adapter == Adapter(name="sql", declared=True)
    assert (found.group, found.schedules) == (None, ())


def test_everything_that_can_be_said():
    found = read_adapter(
        lora_adapter(
            poolRef={"name": "llama"},
            adapterName="Team/sql_7",
            source="hf://org/sql",
            revision="main",
            baseModel="llama",
            rank=16,
            targets=["q_proj"],
            sha256="A" * 64,
            weekend="deprioritize",
            replicas=3,
            placement={"prefillReplicas": 1, "selector": {"zone": "west"}, "reserve": True},
            then=["chart"],
            schedules=[{"cron": "45 8 * * mon-fri", "timezone": "America/Mexico_City", "for": "10h", "replicas": 5}],
        )
    )
    assert found.adapter == Adapter(
        name="Team/sql_7",
        source="hf://org/sql",
        revision="main",
        base_model="llama",
        rank=16,
        targets=("q_proj",),
        sha256="a" * 64,
        declared=True,
        weekend="deprioritize",
        pin=PinSpec(replicas=3, prefill_replicas=1, selector={"zone": "west"}, reserve=True),
    )
    assert found.group == AffinityGroup(name="Team/sql_7", first="Team/sql_7", then=("chart",))
    (schedule,) = found.schedules
    assert schedule == Schedule(
        adapters=("Team/sql_7",), cron="45 8 * * mon-fri", timezone="America/Mexico_City", replicas=5, lasts=36_000.0
    )


@pytest.mark.parametrize(
    ("spec", "pin"),
    [
        ({"replicas": 0}, None),
        ({"replicas": 2}, PinSpec(replicas=2)),
        ({"placement": {"pods": ["a-rank-0"]}}, PinSpec(pods=("a-rank-0",))),
        ({"placement": {"selector": {"a": "b"}}}, PinSpec(selector={"a": "b"})),
        ({"placement": {"reserve": True}}, None),
    ],
)
def test_who_is_pinned(spec, pin):
    assert read_adapter(lora_adapter(**spec)).adapter.pin == pin


def test_all_problems_are_told_at_once():
    with pytest.raises(ObjectError) as refused:
        read_adapter(
            lora_adapter(
                replicas="two", rnk=3, schedules=[{"cron": "x", "timezone": "Mars", "for": "1h"}], then=["a,b"]
            )
        )
    text = str(refused.value)
    assert text.startswith("spec: ")
    for part in (
        'replicas: must be a whole number of at least 0 and at most 100000 (found "two")',
        "rnk: unknown key",
        "schedules[0].cron: ",
        'schedules[0].timezone: must be a time zone of the IANA database (found "Mars")',
        "then[0]: must not contain a comma",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"then": ["sql"]}, "spec.then: must not name the adapter itself"),
        ({"replicas": 2, "placement": {"pods": ["a"]}}, "replicas: asks for more replicas than the 1 pods"),
        ({"targets": [f"t{n}" for n in range(65)]}, "targets: has 65 items; the limit is 64"),
    ],
)
def test_what_cannot_be(spec, says):
    with pytest.raises(ObjectError) as refused:
        read_adapter(lora_adapter(**spec))
    assert says in str(refused.value)


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from([*SPEC]), JSON) | JSON)
def test_anything_is_a_wish_or_an_error(spec):
    try:
        assert read_adapter({"metadata": {"name": "sql"}, "spec": spec}).object_name == "sql"
    except ObjectError as error:
        assert str(error).startswith("spec")  # noqa: PT017


# -- the schema


def schema():
    document = yaml.safe_load(CRD.read_text())
    (version,) = document["spec"]["versions"]
    return document["spec"], version, version["schema"]["openAPIV3Schema"]["properties"]


def test_the_schema_is_of_this_kind():
    spec, version, _ = schema()
    assert (spec["group"], spec["names"]["kind"], spec["names"]["plural"]) == (GROUP, KIND, PLURAL)
    assert version["name"] == VERSION
    assert set(version["subresources"]) == {"status", "scale"}


def test_the_schema_has_the_readers_fields_and_no_others():
    properties = schema()[2]["spec"]["properties"]
    assert set(properties) == set(SPEC)
    assert set(properties["placement"]["properties"]) == set(PLACEMENT)
    item = properties["schedules"]["items"]
    assert set(item["properties"]) == set(SCHEDULE)
    assert set(item["required"]) == {"cron", "timezone", "for"}


def test_the_schemas_bounds_are_the_readers():
    properties = schema()[2]["spec"]["properties"]
    for name, field in {**properties, **properties["placement"]["properties"]}.items():
        read = SPEC.get(name) or PLACEMENT.get(name)
        if field["type"] != "integer" or read is None:
            continue
        for value, good in ((field["minimum"], True), (field["maximum"], True), (field["minimum"] - 1, False)):
            spec = {name: value} if name in SPEC else {"placement": {name: value}}
            if good:
                read_adapter(lora_adapter(**spec))
            else:
                with pytest.raises(ObjectError):
                    read_adapter(lora_adapter(**spec))
    assert properties["replicas"]["maximum"] == MOST_REPLICAS
    assert properties["weekend"]["enum"] == ["deprioritize"]


def test_the_schema_takes_every_status_that_is_written():
    status = schema()[2]["status"]["properties"]
    written = next_status(AdapterTruth(generation=1, desired=1, pods=("a",)), None, now=0.0)
    assert written is not None
    assert set(written) == set(status)
    condition = status["conditions"]["items"]
    assert set(written["conditions"][0]) == set(condition["properties"])
    assert set(condition["required"]) <= set(written["conditions"][0])


def test_every_field_is_described():
    def undescribed(properties, path=""):
        for name, field in properties.items():
            if "description" not in field:
                yield f"{path}{name}"
            yield from undescribed(field.get("properties", {}), f"{path}{name}.")
            yield from undescribed(field.get("items", {}).get("properties", {}), f"{path}{name}[].")

    properties = schema()[2]
    found = [*undescribed(properties["spec"]["properties"]), *undescribed(properties["status"]["properties"])]
    assert found == []
