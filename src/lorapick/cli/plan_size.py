"""`lorapick plan size`: how large an adapter is, before it is trained or from the folder that PEFT saved.

In: a base model, a rank and targets; or an adapter's folder. Out: parameters and bytes, per module and in total, the
ratio to queries alone, the effective scale. Exit code 2 for bad input. Not here: how it is reckoned (`plan.sizes`).
"""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lorapick.cli.plan_report import show
from lorapick.plan.sizes.adapters import SHORT_DTYPES, AdapterSize, measured, reckoned, width_of
from lorapick.plan.sizes.asked import asked
from lorapick.plan.sizes.folders import AdapterFolder, read_folder
from lorapick.plan.sizes.models import BaseModel, built_in, read_model
from lorapick.plan.sizes.report import Sized, report
from lorapick.wire.peft import PeftError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("size")(size)


def size(
    adapter: Annotated[Path | None, typer.Argument(help="Folder that PEFT saved an adapter to.")] = None,
    model: Annotated[
        str | None, typer.Option(help="A common model's name, or a config.json; default: the adapter's, if built in.")
    ] = None,
    rank: Annotated[int | None, typer.Option("--rank", "-r", help="Of every pair of matrices.")] = None,
    alpha: Annotated[float | None, typer.Option(help="What scales the adapter: alpha/r.")] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="Modules, as q,v or q_proj,v_proj; all-linear; a regular expression. Default: q,v, or what has both"
        ),
    ] = None,
    rslora: Annotated[bool, typer.Option("--rslora", help="Scaled by alpha/√r.")] = False,
    dtype: Annotated[
        str, typer.Option(help="float32, float16, bfloat16 or float8, of what is not saved yet.")
    ] = "float16",
    show_work: Annotated[bool, typer.Option("--show-work", help="Formula and source of every number.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with plots to this file.")] = None,
) -> None:
    """Say how many parameters and bytes an adapter has."""
    try:
        width_of(dtype)
        if adapter is not None:
            if rank is not None or alpha is not None or targets is not None or rslora:
                raise ValueError("--rank, --alpha, --targets and --rslora are in the adapter's own configuration")
            found = _of_folder(read_folder(adapter), model=model, dtype=dtype)
        else:
            found = _of_options(model, rank, alpha=alpha, targets=targets, rslora=rslora, dtype=dtype)
        modules = {"modules": msgspec.to_builtins(found.size.modules)}
        show(report(found), as_json=as_json, page=html, show_work=show_work, more=modules)
    except (OSError, ValueError) as error:
        print(f"lorapick plan size: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def _of_options(
    model: str | None, rank: int | None, *, alpha: float | None, targets: str | None, rslora: bool, dtype: str
) -> Sized:
    if model is None or rank is None:
        raise ValueError("give an adapter's folder, or --model and --rank of one that is not there yet")
    base = read_model(model)
    config = asked(base.shape, rank=rank, alpha=alpha, targets=targets, rslora=rslora)
    found = reckoned(config, base.shape, dtype=dtype, file=base.name)
    return Sized(f"rank {rank} on {', '.join(found.names)} of {base.name}", config, found, _full(dtype), base)


def _of_folder(folder: AdapterFolder, *, model: str | None, dtype: str) -> Sized:
    base = _base(folder, model)
    file = str(folder.folder)
    if folder.tensors is None:
        if base is None:
            raise PeftError(
                f"{file}: no adapter_model.safetensors, and {folder.config.base_model_name_or_path!r} is not built in; "
                "give --model"
            )
        found = reckoned(folder.config, base.shape, dtype=dtype, file=file)
        return Sized(file, folder.config, found, _full(dtype), base, folder)
    found = measured(folder.config, folder.tensors, file=file)
    types = "+".join(dict.fromkeys(each.dtype for each in folder.tensors.values())) or "no tensors"
    return Sized(file, folder.config, found, types, base, folder, _by_configuration(folder, base))


def _by_configuration(folder: AdapterFolder, base: BaseModel | None) -> AdapterSize | None:
    if base is None:
        return None
    try:
        return reckoned(folder.config, base.shape, dtype="float16", file=str(folder.folder))
    except PeftError:
        return None


def _base(folder: AdapterFolder, model: str | None) -> BaseModel | None:
    """What was asked for, else the built-in model that the configuration names; its paths are not followed."""
    if model is not None:
        return read_model(model)
    return built_in(folder.config.base_model_name_or_path or "")


def _full(dtype: str) -> str:
    return SHORT_DTYPES.get(dtype.lower(), dtype.lower())
