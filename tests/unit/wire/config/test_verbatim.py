from collections.abc import Mapping

import pytest
import yaml

from lorapick.core.picking.policies import POLICIES
from lorapick.wire.config import parse_settings
from lorapick.wire.config.verbatim import read, write

TEXT = b"""\xef\xbb\xbfdiscovery:
  pods: [{name: a, address: '127.0.0.1:1', labels: {generation: 010, build: 1.10, quoted: '010', \xc3\xbc: 1_000}}]
adapters: {list: [&x {name: x, revision: 1.10, pin: {selector: {generation: 010, hex: 0x1F}}}, {<<: *x, name: y}]}
admission: {max_wait: 1.50s}
picking: {fallbacks: 2}
seed: 7
"""


def test_a_configuration_means_the_same_when_it_is_written_again() -> None:
    before = parse_settings(TEXT, file="a", policies=POLICIES)
    assert parse_settings(write(read(TEXT)), file="b", policies=POLICIES) == before
    assert before.discovery.pods is not None
    assert before.discovery.pods[0].labels["build"] == "1.10"


@pytest.mark.parametrize("scalar", ["010", "1.10", "0x1F", "1_000", "1:30", ".5", "+7", "'010'", "'yes'", "yes", "~"])
def test_scalars_keep_type_and_text(scalar: str) -> None:
    document = f"a: {scalar}".encode()
    old, new = (yaml.compose(text.decode()).value[0][1] for text in (document, write(read(document))))
    assert old.tag == new.tag
    if old.tag.endswith(("int", "float", "str")):
        assert old.value == new.value


def test_nothing_is_a_document_without_keys() -> None:
    assert read(b"{}") == {}
    found: Mapping[str, object] = read(b"# nothing")
    assert found == {}
