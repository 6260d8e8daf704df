"""`lorapick` as it is, but with the baseline's picker: so `up` is tested whatever the real picker does today."""

import sys
from pathlib import Path

import yaml

from lorapick.cli.main import main
from lorapick.live import stack

TRIVIAL = Path(__file__).parent.parent.parent / "bench" / "trivial_extproc.py"


def trivial_picker(_options, place):
    document = yaml.safe_load(place.configuration.read_text())
    pods = yaml.safe_load(Path(document["discovery"]["file"]).read_text())
    addresses = ",".join(pod["address"] for pod in pods)
    return (sys.executable, str(TRIVIAL), place.extproc, addresses, document["server"]["body"])


if __name__ == "__main__":
    stack.picker_command = trivial_picker
    main()
