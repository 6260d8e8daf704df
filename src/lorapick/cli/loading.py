"""A configuration with all that it names, read and checked in one go, for every command that takes one.

In: the path of a configuration, lorapick's own or an `EndpointPickerConfig`. Out: `Loaded`; or `ConfigError` with every
problem of the configuration, its pods file, its `EndpointPickerConfig` and its catalogue.
Not here: what is right (see `wire.config`), and following files that change (see `live.discovery`).
"""

import re
from pathlib import Path

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.live.catalogue import CatalogueError, with_catalogue
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError, Later, Problem, later_keys, parse_settings, unreadable
from lorapick.wire.config.epp import is_endpoint_picker, parse_endpoint_picker, with_endpoint_picker
from lorapick.wire.config.epp.flags import FlagError, Flags
from lorapick.wire.config.roles import useless_roles
from lorapick.wire.podsfile import parse_pods

_KEYS = DisaggregationSettings.__struct_fields__
_SECTION = re.compile(rb"^disaggregation[ \t]*:(.*(?:\n(?:[ \t#].*)?)*)", re.MULTILINE)
"""The text of the section on pairs, where the document is a mapping in lines."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A good configuration."""

    path: Path
    content: bytes
    settings: Settings
    """The catalogue's adapters included."""
    pods: tuple[Pod, ...]
    later: tuple[Later, ...]
    """Keys that no part acts on yet."""

    @property
    def useless_roles(self) -> tuple[str, ...]:
        """What cannot work of the pods' roles, one line each; nothing where pods are not known before the start."""
        decide = self.settings.disaggregation.decide
        return useless_roles(self.pods, decide=decide, configured=self._asks_for_pairs)

    @property
    def _asks_for_pairs(self) -> bool:
        """Whether somebody wrote a section on pairs. A list of all defaults, as in the example, asks for nothing."""
        if self.settings.disaggregation != DisaggregationSettings():
            return True
        written = _SECTION.search(self.content)
        return written is not None and any(key.encode() not in written[1] for key in _KEYS)

    @property
    def pods_file(self) -> Path | None:
        """The file that the pods come from; relative paths start at the configuration. None: it has them itself."""
        name = self.settings.discovery.file
        return None if name is None else self.path.parent / name


def load(path: Path, *, without_pods: bool = False) -> Loaded:
    """Read a configuration and what it names.

    With `without_pods` an `EndpointPickerConfig` that says nothing of where pods are is good too.

    Raises:
        ConfigError: all problems of the configuration; or, when it has none, those of the files that it names.
    """
    content = _read(path)
    if is_endpoint_picker(content):
        return _load_picker(path, content, without_pods=without_pods)
    settings = parse_settings(content, file=str(path), policies=POLICIES)
    problems: list[Problem] = []
    if settings.picking.endpoint_picker_config is not None:
        picker_file = path.parent / settings.picking.endpoint_picker_config
        try:
            picker = parse_endpoint_picker(_read(picker_file), file=str(picker_file))
            settings = with_endpoint_picker(settings, picker)
        except ConfigError as error:
            problems.extend(error.problems)
    try:
        settings = with_catalogue(settings, beside=path.parent)
    except CatalogueError as error:
        problems.append(Problem(file=str(path), message=str(error)))
    pods = settings.discovery.pods
    if settings.discovery.file is not None:
        pods_file = path.parent / settings.discovery.file
        try:
            pods = parse_pods(_read(pods_file), file=str(pods_file), settings=settings)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    later = later_keys(content, file=str(path))
    return Loaded(path=path, content=content, settings=settings, pods=pods, later=later)


def load_flags(flags: Flags) -> Loaded:
    """What llm-d's flags say, with the `EndpointPickerConfig` that they name, if any.

    Raises:
        ConfigError: the configuration is none, or wrong; or nobody says where pods are.
        FlagError: flags and configuration contradict each other.
    """
    settings = flags.settings
    path = Path(flags.config_file or "--config-text")
    content = b"" if flags.config_text is None else flags.config_text.encode()
    if flags.config_file is not None:
        content = _read(path)
        if not is_endpoint_picker(content):
            raise FlagError(
                f"{path} is no EndpointPickerConfig; a lorapick.yaml stands under --config, and says itself where pods "
                "are (discovery.kubernetes) and where to listen (server)"
            )
    if content:
        picker = parse_endpoint_picker(content, file=str(path))
        if picker.endpoints is not None and settings.discovery.kubernetes is not None:
            raise FlagError(f"--pool-name or --endpoint-selector, and file-discovery in {path}: keep one of them")
        settings = with_endpoint_picker(settings, picker)
    pods: tuple[Pod, ...] = ()
    if settings.discovery.file is not None:
        pods_file = path.parent / settings.discovery.file
        pods = parse_pods(_read(pods_file), file=str(pods_file), settings=settings)
    elif settings.discovery.kubernetes is None:
        raise FlagError("where are the pods? Give --pool-name, or --endpoint-selector and --endpoint-target-ports")
    return Loaded(path=path, content=content, settings=settings, pods=pods, later=())


def _load_picker(path: Path, content: bytes, *, without_pods: bool) -> Loaded:
    """An `EndpointPickerConfig` by itself: everything else is as by default, pods are those of its `file-discovery`."""
    picker = parse_endpoint_picker(content, file=str(path))
    settings = with_endpoint_picker(Settings(), picker)
    pods: tuple[Pod, ...] = ()
    if settings.discovery.file is not None:
        pods_file = path.parent / settings.discovery.file
        pods = parse_pods(_read(pods_file), file=str(pods_file), settings=settings)
    elif not without_pods:
        hint = (
            "add a plugin of type file-discovery with the path of a list of pods, and name it under "
            "dataLayer.discovery; give --pool-name, of an InferencePool; or write a lorapick.yaml with discovery, and "
            f"picking: {{endpoint_picker_config: {path.name}}}"
        )
        raise ConfigError([Problem(file=str(path), message="says nothing of where pods are", hint=hint)])
    return Loaded(path=path, content=content, settings=settings, pods=pods, later=())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from None
