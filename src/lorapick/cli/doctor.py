"""`lorapick doctor`: what is wrong with a running fleet, worst first, with the arithmetic and what helps.

In: the admin API's URL, or a picture that was saved. Out: findings in words, or the answer as JSON, which can be read
again with `--file`. Exit code: 1 when something harms users now, else 0. Not here: what is wrong (see `core.doctor`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lorapick.cli import admin_client
from lorapick.cli.admin_client import DEFAULT, JsonOption
from lorapick.core.doctor.diagnose import diagnose
from lorapick.core.doctor.findings import Diagnosis, Finding, Urgency
from lorapick.core.doctor.picture import Picture
from lorapick.live.doctor import DoctorAnswer

WORDS = {Urgency.PAGE: "NOW", Urgency.WARN: "WARN", Urgency.INFO: "INFO"}

EndpointOption = Annotated[
    str,
    typer.Option("--admin", "--endpoint", "--url", envvar="LORAPICK_ADMIN", help="URL of the picker's admin API."),
]
FileOption = Annotated[
    Path | None, typer.Option("--file", help="Look at an answer that was saved with --json, not at a picker.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(admin: EndpointOption = DEFAULT, file: FileOption = None, as_json: JsonOption = False) -> None:
    """Say what is wrong with a fleet, worst first, and what helps."""
    with admin_client.told("doctor"):
        answer = _asked(admin) if file is None else _read(file)
    if as_json:
        print(msgspec.json.encode(answer).decode())
    else:
        print("\n".join(admin_client.printable(line) for line in _lines(answer.diagnosis)))
    if answer.diagnosis.pages:
        raise typer.Exit(1)


def _asked(admin: str) -> DoctorAnswer:
    return admin_client.decode(admin_client.get(admin, "/v1/doctor"), DoctorAnswer, admin)


def _read(file: Path) -> DoctorAnswer:
    """A saved picture, judged anew: this version may know more than the one that saved it."""
    try:
        picture = msgspec.json.decode(file.read_bytes(), type=_Saved).picture
    except OSError as error:
        raise admin_client.AdminError(f"--file {file}: {(error.strerror or str(error)).lower()}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise admin_client.AdminError(
            f"--file {file} holds no answer of the doctor ({error}); save one with `lorapick doctor --json`"
        ) from None
    return DoctorAnswer(diagnosis=diagnose(picture), picture=picture)


class _Saved(msgspec.Struct):
    """What is read of a saved answer."""

    picture: Picture


def _lines(found: Diagnosis) -> Iterator[str]:
    if not found.findings:
        yield "Nothing is wrong."
    for finding in found.findings:
        yield from _finding(finding)
    yield f"Looked at: {'; '.join(found.figures)}." if found.figures else "Nothing is known of this fleet."
    if found.unknown:
        yield f"Unknown: {'; '.join(found.unknown)}."


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{WORDS[finding.urgency]:4} {finding.what} [{finding.check}]"
    for line in finding.arithmetic:
        yield f"       {line}"
    for remedy in finding.remedies:
        yield f"     - {remedy.action} (price: {remedy.price})"
