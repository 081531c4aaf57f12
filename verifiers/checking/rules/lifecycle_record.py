"""What must be true of a lifecycle record as a whole, whatever its experiments are about."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any, Dict, Iterator, List, Tuple

from checking.rules.lifecycle_shape import Fault, pointer, show

Record = Dict[str, Any]
KINDS = {
    "co_residency_rounds": "co-residency",
    "crashes": "crash",
    "churn_request_order": "lora",
    "selection_order": "selection",
}
_COMMIT_URL = re.compile(r"^https://github\.com/[^/]+/[^/]+/(?:blob|tree|commit|raw)/([^/]+)")
_MODEL_URL = re.compile(r"^https://huggingface\.co/(.+)/blob/([^/]+)/(.+)$")


def kind_of(experiment: Record) -> str:
    """`co-residency`, `crash`, `lora` or `selection`, told by the protocol."""
    return next(kind for key, kind in KINDS.items() if key in experiment["protocol"])


def experiments(record: Record, kind: str = "") -> Iterator[Tuple[str, Record]]:
    """(JSON pointer, experiment) of one kind, or of all."""
    for number, experiment in enumerate(record["experiments"]):
        if not kind or kind_of(experiment) == kind:
            yield "/experiments/%d" % number, experiment


def model_names(experiment: Record) -> List[str]:
    """The names of the experiment's models, in order."""
    return [model["model"] for model in experiment["models"]]


def differ(place: str, found: Any, expected: Any, why: str = "") -> Iterator[Fault]:
    """A fault when two figures are not equal."""
    if found != expected or isinstance(found, bool) != isinstance(expected, bool):
        yield Fault(place, show(found), "%s%s" % (show(expected), ", " + why if why else ""))


def date_is_real(record: Record) -> Iterator[Fault]:
    """measured_on is a day of the calendar."""
    try:
        datetime.date(*(int(part) for part in record["measured_on"].split("-")))
    except ValueError:
        yield Fault("/measured_on", show(record["measured_on"]), "a day of the calendar")


def ids_are_unique(record: Record) -> Iterator[Fault]:
    """No two experiments share an id, and no two models of one experiment a name."""
    seen = set()
    for place, experiment in experiments(record):
        if experiment["id"] in seen:
            yield Fault(place + "/id", show(experiment["id"]), "an id of its own")
        seen.add(experiment["id"])
        names = model_names(experiment)
        for number, name in enumerate(names):
            if name in names[:number]:
                yield Fault("%s/models/%d/model" % (place, number), show(name), "a name of its own")


def urls(value: Any, place: str = "") -> Iterator[Tuple[str, str]]:
    """(JSON pointer, URL) of every text that is a URL."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from urls(one, pointer(place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from urls(one, pointer(place, number))
    elif isinstance(value, str) and value.startswith("https://"):
        yield place, value


def code_urls_pin_the_source(record: Record) -> Iterator[Fault]:
    """Every link into the repository's files names a commit of the experiment's source, and lies in that repository."""
    for place, experiment in experiments(record):
        commits = [value for key, value in experiment["source"].items() if key.endswith("commit")]
        for where, url in urls(experiment["reproduction"], place + "/reproduction"):
            match = _COMMIT_URL.match(url)
            if not match or match.group(1) not in commits:
                found = match.group(1) if match else url
                yield Fault(where, show(found), "a link pinned to one of %s" % ", ".join(commits))
            if not url.startswith(record["repository"] + "/"):
                yield Fault(where, show(url), "a link into %s" % record["repository"])
        pull = experiment["source"].get("pull_request")
        if pull is not None and not re.match(re.escape(record["repository"]) + r"/pull/[1-9][0-9]*\Z", pull):
            yield Fault(place + "/source/pull_request", show(pull), "a pull request of %s" % record["repository"])


def model_urls_pin_the_revision(record: Record) -> Iterator[Fault]:
    """Every model's configuration link names that model and that revision."""
    for place, experiment in experiments(record):
        for number, model in enumerate(experiment["models"]):
            if "config_url" in model:
                match = _MODEL_URL.match(model["config_url"])
                found = match.groups() if match else (model["config_url"], "", "")
                expected = (model["model"], model["revision"], "config.json")
                yield from differ("%s/models/%d/config_url" % (place, number), "@".join(found), "@".join(expected))


def models_agree(record: Record) -> Iterator[Fault]:
    """One model has one revision and one KV budget, one GPU one size, in all experiments."""
    known: Dict[Tuple[str, str], Tuple[str, Any]] = {}
    for place, experiment in experiments(record):
        facts = [
            (model["model"], key, model[key], "%s/models/%d/%s" % (place, number, key))
            for number, model in enumerate(experiment["models"])
            for key in ("revision", "artifact_sha256", "config_sha256", "kv_token_budget")
            if key in model
        ]
        hardware = experiment["hardware"]
        if "gpu" in hardware:
            total = "reported_device_total_bytes"
            facts.append((hardware["gpu"], total, hardware[total], "%s/hardware/%s" % (place, total)))
        for name, key, value, where in facts:
            first, expected = known.setdefault((name, key), (where, value))
            if value != expected:
                yield Fault(where, show(value), "%s as in %s" % (show(expected), first))


def device_is_named(record: Record) -> Iterator[Fault]:
    """A single-device experiment names one GPU, or a CPU and then no GPU; only a GPU's memory is called NVML's."""
    for place, experiment in experiments(record):
        hardware = experiment["hardware"]
        cpu = hardware.get("device") == "cpu"
        yield from differ(place + "/hardware/gpu_count", hardware["gpu_count"], 0 if cpu else 1, "one device")
        if cpu == ("gpu" in hardware):
            yield Fault(place + "/hardware/gpu", show(hardware.get("gpu")), "a GPU's name exactly when there is one")
        source = hardware.get("device_memory_source")
        if source is not None and cpu != (source == "process-rss-against-budget"):
            yield Fault(place + "/hardware/device_memory_source", show(source), "a source that fits the device")


def limitations_are_stated(record: Record) -> Iterator[Fault]:
    """Every experiment says what it does not show, in words that are not blank and not said twice."""
    for place, experiment in experiments(record):
        listed: List[str] = experiment.get("limitations", [])
        if not listed:
            yield Fault(place + "/limitations", "none", "at least one")
        for number, text in enumerate(listed):
            if not text.strip() or text in listed[:number]:
                yield Fault("%s/limitations/%d" % (place, number), show(text), "a limitation, once")


def runs_are_counted(record: Record) -> Iterator[Fault]:
    """Every experiment records the runs that its figures come from: the figures of one run are given."""
    for place, experiment in experiments(record):
        where = place + "/protocol/recorded_completed_runs"
        yield from differ(where, experiment["protocol"]["recorded_completed_runs"], 1, "the figures are of one run")


def evidence_is_named(record: Record) -> Iterator[Fault]:
    """Every experiment retains its raw events, and no two retained files have one hash."""
    for place, experiment in experiments(record):
        kept = experiment["retained_evidence_sha256"]
        place += "/retained_evidence_sha256"
        if "raw_events" not in kept:
            yield Fault(place + "/raw_events", "nothing", "the hash of the raw events")
        for number, (key, digest) in enumerate(kept.items()):
            if digest in list(kept.values())[:number]:
                yield Fault(pointer(place, key), show(digest), "a hash of its own")
        manifest = experiment["source"].get("source_manifest_file_sha256")
        if manifest is not None and "source_manifest_file" in kept:
            yield from differ(place + "/source_manifest_file", kept["source_manifest_file"], manifest)


def _sentences(experiment: Record) -> Iterator[Tuple[str, str]]:
    for key in ("limitations", "caller_behavior"):
        for number, text in enumerate(experiment.get(key, [])):
            yield "/%s/%d" % (key, number), text
    for key in ("instrumentation", "fixtures"):
        if key in experiment["protocol"]:
            yield "/protocol/" + key, experiment["protocol"][key]


def words_agree_with_figures(record: Record) -> Iterator[Fault]:
    """A figure that a sentence repeats (cooldown, successes, token cap, harness deadline) is the figure of the record."""
    for place, experiment in experiments(record):
        protocol, measured = experiment["protocol"], experiment["measurements"]
        for pattern, value in (
            (r"(?<![\d.])(\d+(?:\.\d+)?)-second cooldown\b", protocol.get("cooldown_s")),
            (r"\b(\d+) successes\b", measured.get("healthy_requests_successful")),
            (r"\bfixed (\d+)-token KV cap\b", protocol.get("kv_token_cap")),
            (r"\bRetry-After: (\d+)\b", protocol.get("retry_after_s")),
        ):
            for where, text in _sentences(experiment):
                for said in re.findall(pattern, text):
                    if value is not None and Decimal(said) != value:
                        yield Fault(place + where, show(said), "%s, the figure of the record" % show(value))
        note = experiment["reproduction"].get("environment_note", "")
        for said in re.findall(r"\b(\d+)-second default deadline\b", note):
            deadline = protocol.get("harness_deadline_s")
            if deadline is not None and int(said) != deadline:
                yield Fault(place + "/reproduction/environment_note", show(said), show(deadline))
