"""How an engine is launched: its words as they are, as they may be published, and what must be there first."""

import hashlib
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evidence.campaign import expanded
from evidence.capture.adapters import find_adapter, hide_private
from evidence.capture.processes import own_module
from evidence.errors import EvidenceError

HOST = "127.0.0.1"
LEAST_DISK = 64 << 20
REASONS = ("PROGRAM_NOT_FOUND", "MODEL_NOT_FOUND", "DISK_TOO_SMALL", "ACCESS_DENIED", "NOT_READY", "ENGINE_DIED")
_PYTHON = re.compile(r"python[\d.]*")


class EngineSpec(Protocol):
    """The campaign's [[engine]] table, as far as launching needs it."""

    @property
    def id(self) -> str: ...
    @property
    def adapter(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def program(self) -> Sequence[str]: ...
    @property
    def model(self) -> str | None: ...
    @property
    def urls(self) -> Sequence[str]: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    @property
    def arguments(self) -> Sequence[str]: ...
    @property
    def ready_timeout_seconds(self) -> float: ...
    @property
    def snapshot(self) -> str: ...


class SetupFailure(EvidenceError):
    """An engine does not serve. `reason` is one of REASONS."""

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        assert reason in REASONS
        super().__init__(message, hint, code=4)
        self.reason = reason


@dataclass(frozen=True)
class Launch:
    """How an engine is started: the words as they are, and as they may be published."""

    words: tuple[str, ...]
    arguments: tuple[str, ...]  # normalised
    environment: Mapping[str, str]  # what the campaign set, normalised
    variables: Mapping[str, str]  # all that is added to the runner's own environment
    folder: Path | None

    @property
    def sha256(self) -> str:
        """Of the original words joined by NUL."""
        return hashlib.sha256("\0".join(self.words).encode()).hexdigest()


def apply_setting(words: Sequence[str], argument: str, value: str) -> list[str]:
    """`words` with `argument` set to `value`: replaced where it stands (`--flag value` or `--flag=value`), else added.

    Raises EvidenceError if it stands there twice: nobody could say which of the two the engine obeys.
    """
    changed, places = list(words), [at for at, word in enumerate(words) if word.split("=", 1)[0] == argument]
    if len(places) > 1:
        raise EvidenceError(f"argument {argument} stands {len(places)} times in the launch arguments, expected once")
    if not places:
        return [*changed, argument, value]
    at = places[0]
    if "=" in changed[at]:
        changed[at] = f"{argument}={value}"
    elif at + 1 < len(changed) and not changed[at + 1].startswith("--"):
        changed[at + 1] = value
    else:
        changed.insert(at + 1, value)
    return changed


def _expand(text: str, what: str) -> str:
    value = expanded(text)
    if value is None:
        raise EvidenceError(f"{what}: found {text!r}, expected its environment variable to be set")
    return value


def write_launch(
    spec: EngineSpec,
    *,
    device: str,
    port: int,
    worker: str = "worker-1",
    setting: tuple[str, str] | None = None,
    arguments: Sequence[str] = (),
    model: str | None = None,
    served_name: str | None = None,
) -> Launch:
    """The launch of `spec` for one worker. `arguments` come behind the spec's own; `setting` is (argument, value).

    The argument of a setting is a flag, or `ENV:NAME` for an environment variable. `served_name` is the model's name
    in requests, for adapters that have a flag for it; without it the model's file or folder name. Raises EvidenceError for an unknown placeholder.
    """
    adapter = find_adapter(spec.adapter)
    model = model if model is not None else spec.model and _expand(spec.model, f"engine {spec.id}: model")
    model = model and _at_home(model, spec.id)
    python, synthetic_variables = own_module("evidence.capture.synthetic")
    real = {"port": str(port), "host": HOST, "model": model or "", "device": device, "alias": worker,
            "python": sys.executable, "model_name": Path(model or "").name}  # fmt: skip
    shown = {name: "{" + name + "}" for name in real} | {"alias": worker, "model_name": "{model}"}

    own = [*(spec.program or adapter.program), *adapter.arguments, *spec.arguments, *arguments]
    served_name = served_name or Path(model or "").name  # never the whole path: it would stand in every answer
    if served_name and adapter.name_flag and not any(w.split("=")[0] == adapter.name_flag for w in own):
        own += [adapter.name_flag, served_name]
    variables = {
        name: _expand(value, f"engine {spec.id}: environment {name}") for name, value in spec.environment.items()
    }
    if spec.snapshot == "nvml" and "CUDA_VISIBLE_DEVICES" not in variables:
        variables["CUDA_VISIBLE_DEVICES"] = "{device}"
    own = [_expand(word, f"engine {spec.id}: arguments") for word in own]
    if own and own[0] == "{synthetic}":
        own[0:1] = ["{python}", *python[1:]]
    literal: set[str] = set()
    if setting is not None:
        argument, value = setting
        literal = {argument, value, f"{argument}={value}"}
        if argument.startswith("ENV:"):
            variables[argument[4:]] = value
        else:
            own = apply_setting(own, argument, value)
    for word in [*own, *variables.values()]:
        for name in re.findall(r"\{([a-z_]+)\}", word):
            if name not in real:
                known = ", ".join("{" + name + "}" for name in real)
                raise EvidenceError(f"engine {spec.id}: unknown placeholder {{{name}}} in {word!r}", f"known: {known}")

    def publish(word: str) -> str:
        if word in literal:
            return word
        if model:
            word = word.replace(model, "{model}")
        return hide_private(_fill(word, shown))

    words = tuple(_fill(word, real) for word in own)
    published = [publish(word) for word in own]
    if published:
        name = Path(words[0]).name
        published[0] = "{python}" if _PYTHON.fullmatch(name) else name
    return Launch(
        words,
        tuple(published),
        {name: publish(value) for name, value in variables.items()},
        {name: _fill(value, real) for name, value in variables.items()}
        | (synthetic_variables if spec.adapter == "synthetic" and not spec.program else {}),
        Path(model).parent if adapter.from_model_parent and model and Path(model).is_dir() else None,
    )


def _at_home(model: str, engine: str) -> str:
    """A model's place with the home directory in the place of `~`."""
    try:
        return str(Path(model).expanduser()) if model.startswith("~") else model
    except RuntimeError:
        raise EvidenceError(
            f"engine {engine}: model: found {model!r}, expected a home directory that is known"
        ) from None


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word


def check_setup(spec: EngineSpec, launch: Launch, *, model: str | None, gated: bool, folder: Path) -> None:
    """Raise SetupFailure if the program or the model is not there, or the disk under `folder` has hardly any room."""
    adapter = find_adapter(spec.adapter)
    if not launch.words:
        raise EvidenceError(f"engine {spec.id}: adapter {spec.adapter} needs a program, found none")
    if model is not None:
        path = Path(model).expanduser()
        is_path = path.is_absolute() or model.startswith((".", "~"))
        if is_path and not path.exists():
            if gated:
                raise SetupFailure("ACCESS_DENIED", f"engine {spec.id}: the model is gated and {model} is not there",
                                   "ask its owner for access and put its files there")  # fmt: skip
            raise SetupFailure(
                "MODEL_NOT_FOUND", f"engine {spec.id}: model {model} is not there", "name its file or folder"
            )
    elif gated:
        raise SetupFailure("ACCESS_DENIED", f"engine {spec.id}: the model is gated and no files of it are named")
    elif adapter.needs_model:
        raise SetupFailure("MODEL_NOT_FOUND", f"engine {spec.id}: no model is named, or its variable is not set")
    if shutil.which(launch.words[0]) is None:
        raise SetupFailure("PROGRAM_NOT_FOUND", f"engine {spec.id}: program {launch.words[0]} is not there",
                           "install it or set `program`")  # fmt: skip
    for word in launch.words[1:3]:
        if word.endswith(".py") and not Path(word).is_file():
            raise SetupFailure("PROGRAM_NOT_FOUND", f"engine {spec.id}: program {word} is not there")
    check_disk(folder, LEAST_DISK)


def check_disk(folder: Path, needed: int) -> None:
    """Raise SetupFailure DISK_TOO_SMALL if fewer than `needed` bytes are free under `folder`."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise SetupFailure("DISK_TOO_SMALL", f"{free:,} bytes are free under {folder}, expected at least {needed:,}")
