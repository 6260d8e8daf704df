"""Every type of the catalogue, taken or refused."""

import pytest
from epp_kit import HEAD, parse

from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp import TYPES, Support


@pytest.mark.parametrize("name", [name for name, each in TYPES.items() if each.support is Support.REFUSED])
def test_refused_types_say_why_and_what_instead(name):
    with pytest.raises(ConfigError) as caught:
        parse(f"{HEAD}plugins: [{{type: {name}, parameters: {{a: 1}}}}]")
    assert TYPES[name].does in str(caught.value) and TYPES[name].instead in str(caught.value)


@pytest.mark.parametrize("name", [name for name, each in TYPES.items() if each.support is not Support.REFUSED])
def test_types_that_are_taken_need_no_parameters_or_say_which(name):
    try:
        picker = parse(f"{HEAD}plugins: [{{type: {name}}}]\nschedulingProfiles: [{{name: decode}}, {{name: prefill}}]")
    except ConfigError as error:
        told = str(error)
    else:
        told = f"profiles {picker.parts[0].what}"
    assert " needs " in told or "profile" in told
