import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement.triggers import LONGEST_NAME, Fired, Refused, Triggers
from lorapick.core.placement.wants import Want
from lorapick.model.adapters import Trigger
from lorapick.model.placement import Why

LOGIN = Trigger(event="tenant.login", preload="{tenant}-assistant", lasts=1800.0)
UPLOAD = Trigger(
    event="document.uploaded", preload="doc-classifier-v2", replicas=2, lasts=600.0, selector={"zone": "w"}
)
ARCHIVE = Trigger(event="document.uploaded", preload="{kind}-archive", lasts=60.0)


def anyone(name: str) -> bool:
    return True


def only(*names: str):
    return lambda name: name in names


def fire(triggers: Triggers, name: str = "tenant.login", now: float = 0.0, known=anyone, **attributes: str) -> Fired:
    return triggers.fired(name, attributes, now=now, known=known)


def adapters(triggers: Triggers, now: float) -> list[str]:
    return [want.adapter for want in triggers.due(now)]


def test_a_login_wants_the_tenants_adapter_for_half_an_hour():
    triggers = Triggers([LOGIN])
    want = Want("acme-assistant", Why.TRIGGER, "tenant.login", until=1810.0)
    assert fire(triggers, now=10.0, tenant="acme", user="x") == Fired((want,))
    assert triggers.due(10.0) == triggers.due(1809.9) == (want,)
    assert triggers.due(1810.0) == ()


def test_firing_again_extends():
    triggers = Triggers([LOGIN])
    fire(triggers, now=0.0, tenant="acme")
    fire(triggers, now=1000.0, tenant="acme")
    assert [want.until for want in triggers.due(1800.0)] == [2800.0]
    assert triggers.due(2800.0) == ()


def test_one_event_may_have_several_triggers_and_one_of_them_may_refuse():
    triggers = Triggers([UPLOAD, ARCHIVE])
    fired = fire(triggers, "document.uploaded")
    assert fired.wants == (
        Want(
            "doc-classifier-v2",
            Why.TRIGGER,
            "document.uploaded zone=w",
            replicas=2,
            selector={"zone": "w"},
            until=600.0,
        ),
    )
    ((why, words),) = fired.refusals
    assert why is Refused.MISSING_ATTRIBUTE
    assert words == '"{kind}-archive" needs the attribute "kind" of document.uploaded, which has none'
    assert len(fire(triggers, "document.uploaded", kind="legal").wants) == 2


def test_wants_of_one_event_for_one_adapter_are_told_apart():
    west, east = (Trigger(event="e", preload="a", lasts=9.0, selector={"zone": zone}) for zone in ("west", "east"))
    triggers = Triggers([west, east])
    assert [want.name for want in fire(triggers, "e").wants] == ["e zone=west", "e zone=east"]
    assert len(triggers.due(0.0)) == 2


def test_a_missing_attribute_names_those_that_are_there():
    ((_, words),) = fire(Triggers([LOGIN]), tennant="acme", user="x\n").refusals
    assert words.endswith('of tenant.login, which has "tennant", "user"')
    ((_, words),) = fire(Triggers([LOGIN]), **{"a\nb": "x"}).refusals
    assert words.endswith('which has "a?b"')


def test_an_unknown_event_is_refused_with_near_ones():
    ((why, words),) = fire(Triggers([LOGIN, UPLOAD]), "tenant.logon").refusals
    assert why is Refused.UNKNOWN_EVENT
    assert words == 'no trigger is for the event "tenant.logon"; near ones: tenant.login'
    ((_, words),) = fire(Triggers([LOGIN]), "zzz").refusals
    assert words.endswith("see `triggers` of the configuration")
    ((_, words),) = fire(Triggers([]), "tenant.login").refusals
    assert words.endswith("the configuration has no `triggers`")


@pytest.mark.parametrize(
    ("tenant", "why"),
    [
        ("a,b", Refused.BAD_NAME),
        ("a b", Refused.BAD_NAME),
        ("a\u00a0b", Refused.BAD_NAME),
        ("a\x00", Refused.BAD_NAME),
        ("a\n", Refused.BAD_NAME),
        ("a" * LONGEST_NAME, Refused.BAD_NAME),
        ("nobody", Refused.UNKNOWN_ADAPTER),
        ("", Refused.UNKNOWN_ADAPTER),
        ("{tenant}", Refused.UNKNOWN_ADAPTER),
    ],
)
def test_names_of_strangers_are_refused(tenant, why):
    triggers = Triggers([LOGIN])
    fired = fire(triggers, tenant=tenant, known=only("acme-assistant"))
    assert fired.wants == ()
    assert [each.why for each in fired.refusals] == [why]
    assert len(fired.refusals[0].words) < 250 and fired.refusals[0].words.isprintable()
    assert triggers.due(0.0) == ()


def test_an_attribute_is_not_filled_again():
    triggers = Triggers([Trigger(event="e", preload="{a}{b}", lasts=1.0)])
    assert [want.adapter for want in fire(triggers, "e", a="{b}", b="x").wants] == ["{b}x"]


def test_of_too_many_the_one_fired_longest_ago_gives_way():
    triggers = Triggers([LOGIN], most=3)
    for at, tenant in enumerate("abcad"):
        fire(triggers, now=float(at), tenant=tenant)
    assert adapters(triggers, 5.0) == ["c-assistant", "a-assistant", "d-assistant"]
    assert triggers.dropped == 1


def test_while_nothing_happens_the_answer_is_the_same_object():
    triggers = Triggers([LOGIN, UPLOAD])
    fire(triggers, tenant="a")
    fire(triggers, "document.uploaded")
    assert triggers.due(1.0) is triggers.due(599.0)
    assert adapters(triggers, 600.0) == ["a-assistant"]


def test_an_unchanged_trigger_keeps_its_wants_over_a_change_of_the_configuration():
    triggers = Triggers([LOGIN, UPLOAD])
    fire(triggers, now=5.0, tenant="a")
    fire(triggers, "document.uploaded", now=6.0)
    changed = triggers.changed_to([ARCHIVE, LOGIN])
    assert adapters(changed, 10.0) == ["a-assistant"]
    fire(changed, now=10.0, tenant="a")
    assert [want.until for want in changed.due(10.0)] == [1810.0]
    assert fire(changed, "document.uploaded", kind="legal").wants[0].adapter == "legal-archive"


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["tenant.login", "document.uploaded"]), st.floats(0, 700))
    ),
    st.integers(1, 5),
)
def test_it_wants_what_a_plain_list_of_firings_says(happenings, most):
    triggers, now, plain = Triggers([LOGIN, UPLOAD], most=most), 0.0, {}
    for tenant, event, pause in happenings:
        now += pause
        plain = {adapter: until for adapter, until in plain.items() if until > now}
        (want,) = fire(triggers, event, now=now, tenant=tenant).wants
        plain.pop(want.adapter, None)
        plain[want.adapter] = want.until
        if len(plain) > most:
            del plain[next(iter(plain))]
        assert len(triggers.due(now)) <= most
        assert {want.adapter: want.until for want in triggers.due(now)} == plain
