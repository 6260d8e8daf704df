"""Names: aliases, adapters that only pods know, near names at bounded cost."""

from lorapick.core.naming import near_names, resolve
from lorapick.model import events
from lorapick.model.adapters import Adapter, Alias, AliasTarget
from lorapick.model.requests import Request
from lorapick.model.settings import Settings
from lorapick.testing.playbook import Playbook, plain_pod


def resolved(book, name, request_id="r"):
    return resolve(book.fleet.state, Request(id=request_id, model=name))


def test_base_models_adapters_and_strangers():
    book = Playbook(pods=["a", plain_pod("b", base_model="other")], adapters=["legal"])
    book.report("a", registered=("only-on-a",))
    assert resolved(book, "base") is None
    assert resolved(book, "other") is None
    assert resolved(book, "legal").declared
    assert resolved(book, "only-on-a") == Adapter(name="only-on-a")
    assert resolved(book, "nobody").name == "nobody"


def test_an_alias_means_its_targets_by_weight():
    def alias(*to):
        return Settings(aliases=(Alias(name="law", to=tuple(AliasTarget(adapter=a, weight=w) for a, w in to)),))

    one = Playbook(adapters=["v1", "v2"], settings=alias(("v1", 0), ("v2", 5)))
    assert {resolved(one, "law", f"r{n}").name for n in range(50)} == {"v2"}
    nothing = Playbook(adapters=["v1", "v2"], settings=alias(("v1", 0), ("v2", 0)))
    assert resolved(nothing, "law").name == "v2"
    same = Playbook(adapters=["v1", "v2"], settings=alias(("v1", 1), ("v2", 1)), seed=3)
    first = [resolved(same, "law", f"r{n}").name for n in range(50)]
    assert {*first} == {"v1", "v2"}
    assert first == [resolved(same, "law", f"r{n}").name for n in range(50)]


def test_an_alias_of_nothing_is_a_name_like_any_other():
    book = Playbook(settings=Settings(aliases=(Alias(name="law", to=()),)))
    assert resolved(book, "law").name == "law"


def test_an_alias_of_a_stranger_names_the_stranger():
    book = Playbook(pods=["a"], settings=Settings(aliases=(Alias(name="law", to=(AliasTarget(adapter="lost"),)),)))
    book.report("a", registered=())
    assert book.arrive("law") == ["r1 refused: 404 adapter_unknown"]
    assert "`lost`" in book.effects[0].message


def test_near_names_are_of_all_kinds_but_not_the_name_itself():
    book = Playbook(
        pods=["a"],
        adapters=["legal-v1"],
        settings=Settings(aliases=(Alias(name="legal-v", to=(AliasTarget(adapter="legal-v1"),)),)),
    )
    book.report("a", registered=("legal-v2",))
    near = near_names(book.fleet.state, "legal-v9", now=0.0)
    assert {*near} == {"legal-v", "legal-v1", "legal-v2"}
    assert near_names(book.fleet.state, "legal-v1", now=1.0) == ["legal-v", "legal-v2"]
    assert near_names(book.fleet.state, "bese", now=2.0) == ["base"]
    assert near_names(book.fleet.state, "quite different", now=3.0) == []


def test_a_refusal_names_them_again_and_again():
    book = Playbook(pods=["a"], adapters=["legal"])
    book.report("a", registered=("legal",))
    for _ in range(50):
        book.arrive("lega")
        assert book.effects[0].message.endswith("Did you mean legal?")


def test_a_name_once_seen_on_a_pod_keeps_its_declaration():
    book = Playbook(pods=["a"])
    book.report("a", registered=("legal",))
    assert not resolved(book, "legal").declared
    book.apply(events.AdapterDeclared, adapter=Adapter(name="legal", declared=True, rank=8))
    assert resolved(book, "legal").rank == 8
