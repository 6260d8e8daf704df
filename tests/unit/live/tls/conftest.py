"""What tests of TLS share."""

from collections.abc import Iterator

import pytest
from tls_kit import Issuer


@pytest.fixture
def issuer(tmp_path) -> Iterator[Issuer]:
    return Issuer(tmp_path)
