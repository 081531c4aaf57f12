"""Lies about identities, weights, registries, recipes, settings files and rules, each coherent but for its meaning."""

from __future__ import annotations

from typing import Any, Callable, Optional

from checking.damage import Bench
from checking.rules.forgery import SETTINGS
from checking.rules.identities import IDENTITIES, RECIPES, REGISTRY, settings_file
from checking.rules.runs_lies import rename

Lie = Callable[[Bench], Optional[str]]


def _edit(document: str, change: Any) -> Lie:
    """A lie in one document; `change` says None when there is nothing of the kind."""

    def damage(bench: Bench) -> Optional[str]:
        if not bench.has(document):
            return None
        value = bench.load(document)
        told = change(value)
        if told is None:
            return None
        bench.store(document, value)
        return "%s: %s" % (document, told)

    return damage


def _profile(change: Any, state: str = "") -> Any:
    def apply(value: Any) -> Optional[str]:
        one = next((one for one in value["profiles"] if not state or one["state"] == state), None)
        if one is None:
            return None
        change(one)
        return str(one["id"])

    return apply


def _recipe(change: Any, wanted: Any = lambda recipe: True) -> Any:
    def apply(value: Any) -> Optional[str]:
        one = next((one for one in value["recipes"] if wanted(one)), None)
        if one is None:
            return None
        change(one)
        return str(one["id"])

    return apply


def _append(folder: str, end: str, line: bytes) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        name = next((name for name in bench.below(folder) if name.endswith(end)), None)
        if name is not None:
            bench.put(name, bench.read(name) + line)
        return name

    return damage


def _first_of(folder: str, change: Any) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        name = next((name for name in bench.below(folder) if name.endswith(".json")), None)
        if name is None:
            return None
        with bench.edit(name) as value:
            change(value)
        return name

    return damage


def _registry(change: Any) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        name = next((name for name in bench.below("") if REGISTRY.match(name)), None)
        if name is None:
            return None
        value = bench.load(name)
        if change(value) is None:
            return None
        bench.store(name, value)
        return name

    return damage


def open_gate(bench: Bench) -> Optional[str]:
    """Write checksums for a profile that is not accessible."""
    one = next((one for one in bench.load(IDENTITIES)["profiles"] if one["state"] != "accessible"), None)
    if one is None:
        return None
    bench.put("weights/%s.sha256" % one["id"], b"0" * 64 + b"  model.safetensors\n")
    return "weights/%s.sha256" % one["id"]


def _promote(value: Any) -> Optional[str]:
    if not value["candidates"]:
        return None
    value["candidates"][0]["profile"] = "unlisted"
    return "unlisted"


def _other_tokens(value: Any) -> Optional[str]:
    if not value["probes"]:
        return None
    value["probes"][0]["expectedTokenIds"] = [*value["probes"][0]["expectedTokenIds"], 7]
    return "a token more"


def _renamed(key: str) -> Any:
    def change(value: Any) -> str:
        value[key] = "sglang" if value[key] != "sglang" else "vllm"
        return key

    return change


def _launch_otherwise(wanted: Any) -> Lie:
    """Give a recipe an argument more, in its settings file too."""

    def damage(bench: Bench) -> Optional[str]:
        with bench.edit(RECIPES) as value:
            one = next((one for one in value["recipes"] if wanted(one)), None)
            if one is not None:
                one["arguments"].append("--another")
                bench.put(one["settingsFile"], settings_file(one))
        return None if one is None else str(one["id"])

    return damage


def _set(key: str, new: Any) -> Any:
    return lambda one: one.update({key: new})


def promote_incomplete(bench: Bench) -> Optional[str]:
    """Let a recipe rest on a comparison that was never completed."""
    names = [name for name in bench.below("results/incomplete") if name.endswith("/comparison.json")]
    if not names or not bench.load(RECIPES)["recipes"]:
        return None
    told = bench.load(names[0])
    with bench.edit(RECIPES) as value:
        value["recipes"][0].update(comparison=told["comparison"], selected="candidate")
    return "%s rests on %s" % (value["recipes"][0]["id"], told["comparison"])


other_revision = _edit(IDENTITIES, _profile(_set("revision", "f" * 40)))
other_licence = _first_of("models", lambda v: v["profile"].update(license="mit-0"))
alter_definition = _append("source-definitions", "", b"# more\n")
alter_index = _append("weights", ".source-index", b"\n")
extra_checksums = _append("weights", ".sha256", b"0" * 64 + b"  extra.bin\n")
register_unlisted = _registry(_promote)
expect_another = _registry(_other_tokens)
other_engine = _registry(_renamed("engine"))
other_adapter = _registry(_renamed("adapter"))
other_mode = _edit(RECIPES, _recipe(_set("modes", ["native-pd"])))
other_profile = _edit(RECIPES, _recipe(_set("profile", "unlisted")))
other_value = _edit(
    RECIPES,
    _recipe(
        lambda one: one.update(selected="baseline" if one["selected"] == "candidate" else "candidate"),
        lambda one: one["comparison"] is not None,
    ),
)
no_setting = _edit(RECIPES, _recipe(_set("arguments", ["serve"]), lambda one: one["comparison"] is not None))
launch_unlike_comparison = _launch_otherwise(lambda one: one["comparison"] is not None)
launch_unlike_attempt = _launch_otherwise(lambda one: one["comparison"] is None)
turn_requalification = _edit(
    RECIPES, _recipe(lambda one: one["requalification"].update(required=not one["requalification"]["required"]))
)
requalify_by_nobody = _edit(
    RECIPES, _recipe(lambda one: one["requalification"].update(attempt="nobody", required=False))
)
extra_line = _append("settings", ".env", b"EXTRA=1\n")
address_in_use = _first_of("rules", lambda v: v.update(listen="http://10.0.0.1:8080"))
other_strategy = _first_of(
    "rules", lambda v: v.update(strategy="direct" if v["strategy"] != "direct" else "round-robin")
)


def _first_worker_only(value: Any) -> None:
    value["workers"][1:] = [dict(value["workers"][0], alias=one["alias"]) for one in value["workers"][1:]]


def _rule_of_two(change: Any) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        for name in bench.below("rules"):
            value = bench.load(name)
            if len(value["workers"]) > 1 and value["strategy"] != "direct":
                change(value)
                bench.store(name, value)
                return name
        return None

    return damage


def _probe_unlisted(value: Any) -> Optional[str]:
    if not value["probes"]:
        return None
    value["probes"][0]["profile"] = "unlisted"
    return "a probe of an unlisted profile"


def lean_on_earlier(bench: Bench) -> Optional[str]:
    """Let a recipe lean on a run that is not the latest of its comparison."""
    with bench.edit(RECIPES) as value:
        one = next((one for one in value["recipes"] if one["comparison"] is not None), None)
        if one is None:
            return None
        old = one["comparison"]
        one["comparison"] += ".run-1"
    if one["comparison"] not in {folder.rpartition("/")[2] for folder in bench.folders(SETTINGS)}:
        rename(bench, old, one["comparison"])
    return "%s leans on %s" % (one["id"], one["comparison"])


route_to_one = _rule_of_two(_first_worker_only)
forget_worker = _rule_of_two(lambda value: value["workers"].pop())
probe_unlisted = _registry(_probe_unlisted)
other_gateway = _edit(
    RECIPES, _recipe(lambda one: one["gateway"].update(name="another"), lambda one: one["gateway"] is not None)
)
other_recipe = _first_of("rules", lambda v: v.update(recipe="another"))
