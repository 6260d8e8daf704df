"""Files that one exports: texts with a mark that says whether somebody has edited them since.

In: thresholds, addresses. Out: a name and a text for each file; whether a text is one of ours as we wrote it.
Not here: writing them (see the command `dashboards`).
"""

import json
import re
from typing import Any, NamedTuple

import xxhash
import yaml

from lorapick import __version__
from lorapick.dash.autoscaling import Scaled, hpa, keda
from lorapick.dash.boards import dashboard_json
from lorapick.dash.rules import Thresholds, alert_words, rules_document
from lorapick.dash.runbooks import runbook_directory

_BLANK = "0" * 16
_MARK = re.compile(r"Written by `lorapick dashboards export` \S+, content ([0-9a-f]{16})")
_LINK = re.compile(r"\]\(([a-z_]+)\)")
"""From one runbook to another: as pages they have no suffix, as files they have."""
RUNBOOKS = "runbooks"


class Options(NamedTuple):
    """What files depend on."""

    thresholds: Thresholds
    runbooks: str
    """URL above the runbooks' names."""
    scaled: Scaled


def files(options: Options) -> dict[str, str]:
    """All files by their names below the directory, in the order in which they are written."""
    thresholds, scaled = options.thresholds, options.scaled
    note = f"Written by `lorapick dashboards export` {__version__}, content {_BLANK}"
    rules = rules_document(thresholds, runbooks=options.runbooks)
    texts = {
        "rules.yaml": _yaml([rules], head=f"{note}\nPrometheus: name this file under `rule_files`."),
        "dashboard.json": dashboard_json(
            thresholds, note=f"{note}. Thresholds are those of the picker's configuration."
        ),
        "keda.yaml": _yaml(keda(thresholds, scaled), head=f"{note}\nKEDA: kubectl apply. Not together with hpa.yaml."),
        "hpa.yaml": _yaml(hpa(thresholds, scaled), head=f"{note}\n{_HPA}"),
    }
    for alert in alert_words():
        text = _LINK.sub(r"](\1.md)", (runbook_directory() / f"{alert}.md").read_text(encoding="utf-8"))
        texts[f"{RUNBOOKS}/{alert}.md"] = f"{text.rstrip()}\n\n---\n{note}\n"
    return {name: _marked(text) for name, text in texts.items()}


_HPA = (
    "First document: values for the Helm chart of prometheus-adapter. Second: the autoscaler, kubectl apply.\n"
    "Not together with keda.yaml."
)


def untouched(text: str) -> bool:
    """Whether this is a file of ours as it was written, by this or another version."""
    found = _MARK.search(text)
    return found is not None and _digest(text[: found.start(1)] + _BLANK + text[found.end(1) :]) == found[1]


def _marked(text: str) -> str:
    return text.replace(f"content {_BLANK}", f"content {_digest(text)}", 1)


def _digest(text: str) -> str:
    return xxhash.xxh64_hexdigest(text.encode())


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _yaml(documents: list[dict[str, Any]], *, head: str) -> str:
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    # Through JSON: enum members become plain texts, and nothing is shared, so no anchors are written.
    plain = json.loads(json.dumps(documents))
    return comment + yaml.dump_all(plain, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
