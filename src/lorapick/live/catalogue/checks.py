"""Whether an adapter's files are what was declared, and what they were.

In: a declaration, what the files say, the record of what pods were told. Out: nothing, or
`AdapterSourceError` with the first thing that is wrong. Not here: reading (see
`live.catalogue.files`), and pods (see `core.placement.compat`).
"""

from lorapick.core.placement.compat import other_base
from lorapick.live.catalogue.files import Contents
from lorapick.live.catalogue.memory import Known
from lorapick.model.adapters import Adapter
from lorapick.wire.adapter_source import AdapterSourceError, SourceReason


def check(adapter: Adapter, contents: Contents, *, known: Known | None, base_model: str) -> None:
    """Compare an adapter's files with its declaration and its past.

    Args:
        adapter: as declared.
        contents: of its files; without a fingerprint nothing is said of the weights.
        known: what pods were told under the name; None: nothing.
        base_model: the fleet's; counts when the declaration names none.

    Raises:
        AdapterSourceError: nobody may load it.
    """
    facts = contents.facts
    if "," in adapter.name:
        raise _mismatch(f"the name {adapter.name!r} has a comma, which vLLM joins names with; give it another")
    if adapter.sha256 is not None and facts.fingerprint not in (None, adapter.sha256):
        raise _mismatch(
            f"sha256 of its weights is {facts.fingerprint}, declared is {adapter.sha256}; "
            "get the right file, or correct the declaration"
        )
    if known is not None:
        check_same(adapter, contents, known=known)
    if adapter.rank is not None and facts.rank not in (None, adapter.rank):
        raise _mismatch(f"declared with rank {adapter.rank}, its files have {facts.rank}; correct one")
    if adapter.base_model is None and other_base(facts.base_model, base_model):
        raise _mismatch(
            f"made for {facts.base_model} (adapter_config.json), the fleet serves {base_model}; "
            "declare its base_model if it fits all the same"
        )


def check_same(adapter: Adapter, contents: Contents, *, known: Known) -> None:
    """Compare an adapter's files with what pods were told under its name.

    Raises:
        AdapterSourceError: they are others.
    """
    before, now = known.fingerprint, contents.facts.fingerprint
    if now is not None and now != before:
        what = f"weights changed under a live name (sha256 {before[:12]}... before, {now[:12]}... now)"
    elif contents.digest != known.digest:
        what = "adapter_config.json changed under a live name, and with it what the weights mean"
    else:
        return
    name = adapter.name.partition("@")[0]
    remedy = f"pods may hold the old ones: put those back, or declare the new ones as {name}@REVISION"
    raise AdapterSourceError(SourceReason.CHANGED, f"{what}; {remedy}")


def _mismatch(message: str) -> AdapterSourceError:
    return AdapterSourceError(SourceReason.MISMATCH, message)
