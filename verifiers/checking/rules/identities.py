"""Identities, weights, registries, recipes, settings files and rules: that they agree with one another."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.package import View
from checking.plan import WORKERS
from checking.reading import JsonFault, read_json, shown
from checking.rules import shapes_inputs
from checking.rules.comparison import peek
from checking.rules.instants import run_name
from checking.rules.launches import launch_values
from checking.shape import Shape

lies = Later("checking.rules.identities_lies")

IDENTITIES = "model-identities.json"
RECIPES = "recipes.json"
REGISTRY = re.compile(r"registry-[a-z0-9][a-z0-9.-]*/manifest\.json\Z")
RULE = re.compile(r"rules/([a-z0-9][a-z0-9.-]*)\.(native|rr|exact|native-pd)\.json\Z")
PLAIN = re.compile(r"[A-Za-z0-9_./:,=+-]+\Z")
HOST = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:/[A-Za-z0-9._/-]*)?\Z")
DOCUMENTATION = re.compile(
    r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\Z"
    r"|\[2001:[dD][bB]8:[0-9a-fA-F:]*\]\Z"
    r"|(?:[a-z0-9-]+\.)*(?:example|invalid|test|localhost|example\.(?:com|net|org))\Z"
)
STRATEGY = {"native": "direct", "rr": "round-robin", "exact": "exact-prefix", "native-pd": "direct"}
Row = Dict[str, Any]


class Inputs:
    """Everything that a reader would reproduce from."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.documents = scope.documents
        self.profiles: List[Row] = scope.document(IDENTITIES)["profiles"]
        self.recipes: List[Row] = scope.document(RECIPES)["recipes"]
        self.registries = {name: value for name, value in scope.documents.items() if REGISTRY.match(name)}
        self.rules = {name: value for name, value in scope.documents.items() if RULE.match(name)}
        self.matrix: List[Row] = list(peek(self.view, "runtime-matrix.json").get("rows", ()))
        self.engines: List[Row] = list(peek(self.view, "manifest.json").get("engines", ()))
        self.attempts = [found for found in scope.facts.get("attempt", {}).values() if found is not None]

    def profile(self, name: str) -> Row:
        """A profile by its id, {} when there is none."""
        return next((one for one in self.profiles if one["id"] == name), {})

    def row(self, recipe: Row) -> Row:
        """The matrix row of a recipe's case, {} when there is none."""
        return next((one for one in self.matrix if one.get("case") == recipe["case"]), {})


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """Identities, recipes, and every profile, registry and rule file that is there."""
    wanted: List[Tuple[str, Shape]] = [(IDENTITIES, shapes_inputs.MODEL_IDENTITIES), (RECIPES, shapes_inputs.RECIPES)]
    wanted += [(name, shapes_inputs.MODEL) for name in view.below("models") if name.endswith(".json")]
    wanted += [(name, shapes_inputs.RULE) for name in view.below("rules")]
    found = [folder + "/manifest.json" for folder in view.folders("") if REGISTRY.match(folder + "/manifest.json")]
    wanted += [(name, shapes_inputs.REGISTRY) for name in found if view.has(name)]
    return wanted


def hold_models(subject: Inputs) -> Iterator[Complaint]:
    """models/ holds every profile once, with the same facts as model-identities.json."""
    ids = [one["id"] for one in subject.profiles]
    if len(set(ids)) != len(ids):
        yield (IDENTITIES, "a profile twice", "each profile once")
    right = {"models/%s.json" % name for name in ids}
    there = set(subject.view.below("models"))
    for name in sorted(right - there):
        yield (name, "no such file", "one for every profile")
    for name in sorted(there - right):
        yield (name, "a file of no profile", "profiles of model-identities.json only")
    for one in subject.profiles:
        if (one["revision"] is None) is (one["revisionReason"] is None):
            yield (
                "%s#%s/revision" % (IDENTITIES, one["id"]),
                shown(one["revision"]),
                "a revision, or null with its reason",
            )
        told = subject.documents.get("models/%s.json" % one["id"])
        if told is not None and told["profile"] != one:
            keys = sorted(key for key in one if told["profile"].get(key) != one[key])
            yield ("models/%s.json" % one["id"], "other facts: " + shown(keys), "those of " + IDENTITIES)


def hold_definitions(subject: Inputs) -> Iterator[Complaint]:
    """Each profile's definition is there with its hash, and nothing else lies beside them."""
    right = {one["definition"]["path"] for one in subject.profiles}
    for one in subject.profiles:
        name = one["definition"]["path"]
        if not name.startswith("source-definitions/" + one["id"] + ".") or not subject.view.has(name):
            yield (
                "%s#%s" % (IDENTITIES, one["id"]),
                "definition " + shown(name),
                "a file source-definitions/%s.*" % one["id"],
            )
        elif subject.view.digest(name) != one["definition"]["sha256"]:
            yield (name, "sha256 " + subject.view.digest(name), one["definition"]["sha256"])
    for name in subject.view.below("source-definitions"):
        if name not in right:
            yield (name, "a definition of no profile", "definitions that a profile names")


def shards(index: bytes) -> Optional[List[str]]:
    """The weight files that a source index names; None when it is no index."""
    try:
        value = json.loads(index.decode("utf-8"))
        return sorted(set(value["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def hold_weights(subject: Inputs) -> Iterator[Complaint]:
    """A source index has the hash its profile names; the checksums are those of its shards and small files.

    Gated and deferred profiles have neither checksums nor, without a hash, an index.
    """
    right = set()
    for one in subject.profiles:
        index, sums = "weights/%s.source-index" % one["id"], "weights/%s.sha256" % one["id"]
        names: Optional[List[str]] = None
        if one["sourceIndexSha256"] is not None:
            right.add(index)
            if not subject.view.has(index):
                yield (index, "no such file", "the index that %s names" % one["id"])
            elif subject.view.digest(index) != one["sourceIndexSha256"]:
                yield (index, "sha256 " + subject.view.digest(index), one["sourceIndexSha256"])
            else:
                names = shards(subject.view.read(index))
        if one["state"] != "accessible" or not one["artifacts"]:
            if subject.view.has(sums):
                yield (sums, "checksums of a %s profile without artifacts" % one["state"], "none")
            continue
        right.add(sums)
        hashes = {entry["path"]: entry["sha256"] for entry in one["artifacts"]}
        for name in names or ():
            if name not in hashes:
                yield (
                    "%s#%s/artifacts" % (IDENTITIES, one["id"]),
                    "no hash of " + shown(name),
                    "every shard of its index",
                )
        if not subject.view.has(sums):
            if one["sourceIndexSha256"] is not None:
                yield (sums, "no such file", "checksums of an accessible profile")
            continue
        lines = re.findall(r"([0-9a-f]{64})  ([^\n]+)\n", subject.view.read(sums).decode("utf-8", "replace"))
        listed = {name: digest for digest, name in lines}
        for name, digest in sorted(listed.items()):
            if hashes.get(name) != digest:
                yield ("%s#%s" % (sums, shown(name)), digest, shown(hashes.get(name)))
        for name in names or ():
            if name in hashes and name not in listed:
                yield (sums, "no line for " + shown(name), "one for every shard")
    for name in subject.view.below("weights"):
        if name not in right and name.endswith(".source-index"):
            yield (name, "an index that no profile names", "indices with a hash in " + IDENTITIES)


def token_hash(ids: List[int]) -> str:
    """The hash of token ids: their JSON list without blanks."""
    return hashlib.sha256(json.dumps(ids, separators=(",", ":")).encode()).hexdigest()


def _named(subject: Inputs, name: str, registry: Row) -> Iterator[Complaint]:
    """A registry is of the engine that names it: its id and adapter, and the version that was declared."""
    folder = name.rpartition("/")[0]
    for engine in subject.engines:
        if not isinstance(engine, dict) or engine.get("registry") != folder:
            continue
        pairs = [("engine", engine.get("id")), ("adapter", engine.get("adapter"))]
        if engine.get("source") == "declared":
            pairs.append(("version", engine.get("version")))
        for key, right in pairs:
            if registry[key] != right:
                yield ("%s#/%s" % (name, key), shown(registry[key]), "that of manifest.json: " + shown(right))


def hold_registries(subject: Inputs) -> Iterator[Complaint]:
    """A registry's candidates are of known profiles, its probes are there, and its engine names it."""
    for name, registry in sorted(subject.registries.items()):
        folder = name.rpartition("/")[0]
        right = {name}
        for one in registry["candidates"]:
            if not subject.profile(one["profile"]):
                yield (name, "candidate " + shown(one["profile"]), "a profile of " + IDENTITIES)
        for one in registry["probes"]:
            right.add(one["path"])
            if not subject.profile(one["profile"]):
                yield (name, "probe of " + shown(one["profile"]), "a profile of " + IDENTITIES)
            if not one["path"].startswith(folder + "/probes/") or not subject.view.has(one["path"]):
                yield (name, "probe " + shown(one["path"]), "a file in %s/probes" % folder)
            elif subject.view.digest(one["path"]) != one["sha256"]:
                yield (one["path"], "sha256 " + subject.view.digest(one["path"]), one["sha256"])
            if token_hash(one["expectedTokenIds"]) != one["tokenIdsSha256"]:
                yield (name + "#/probes/" + one["profile"], one["tokenIdsSha256"], token_hash(one["expectedTokenIds"]))
            told = peek(subject.view, one["path"])
            if (
                isinstance(told, dict)
                and told.get("expectedTokenIds", one["expectedTokenIds"]) != one["expectedTokenIds"]
            ):
                yield (
                    one["path"] + "#/expectedTokenIds",
                    shown(told["expectedTokenIds"]),
                    shown(one["expectedTokenIds"]),
                )
        for inner in subject.view.below(folder):
            if inner not in right:
                yield (inner, "a file that the registry does not name", "its manifest and probes")
        yield from _named(subject, name, registry)
    there = {name.rpartition("/")[0] for name in subject.registries}
    for engine in subject.engines:
        if isinstance(engine, dict) and engine.get("registry") is not None and engine["registry"] not in there:
            yield (
                "manifest.json#/engines/" + shown(engine.get("id")),
                shown(engine["registry"]),
                "a registry that is there",
            )


def hold_recipes(subject: Inputs) -> Iterator[Complaint]:
    """A recipe is of a case that succeeded, by profile, engine and topology; each mode has an accepted attempt."""
    ids = [one["id"] for one in subject.recipes]
    if len(set(ids)) != len(ids):
        yield (RECIPES, "a recipe twice", "each recipe once")
    for recipe in subject.recipes:
        at = "%s#%s" % (RECIPES, recipe["id"])
        row = subject.row(recipe)
        if not row or row.get("outcome") != "SUCCESS":
            yield (at + "/case", "%s, %s" % (recipe["case"], shown(row.get("outcome"))), "a case with SUCCESS")
            continue
        for key in ("profile", "engine", "topology"):
            if recipe[key] != row.get(key):
                yield ("%s/%s" % (at, key), shown(recipe[key]), shown(row.get(key)))
        if subject.profile(recipe["profile"]).get("state") != "accessible":
            yield (at + "/profile", shown(subject.profile(recipe["profile"]).get("state")), "an accessible profile")
        accepted = {
            mode
            for found in subject.attempts
            if (found["row"]["profile"], found["row"]["engine"]) == (recipe["profile"], recipe["engine"])
            and found["row"]["accepted"]
            for mode in found["modes"]
        }
        for mode in recipe["modes"]:
            if mode not in accepted:
                yield (at + "/modes", mode, "modes that an accepted attempt bears: " + shown(sorted(accepted)))


def hold_selection(subject: Inputs) -> Iterator[Complaint]:
    """A selected value is the one that its comparison decided for, and stands in the arguments."""
    incomplete = {peek(subject.view, name).get("comparison") for name in _incomplete(subject.view)}
    for recipe in subject.recipes:
        at = "%s#%s" % (RECIPES, recipe["id"])
        if recipe["comparison"] is None:
            if recipe["selected"] is not None:
                yield (at + "/selected", shown(recipe["selected"]), "null without a comparison")
            continue
        folder = "results/settings/" + recipe["comparison"]
        if not subject.view.has(folder + "/decision.json"):
            found = recipe["comparison"] + (" (incomplete)" if recipe["comparison"] in incomplete else "")
            yield (at + "/comparison", found, "a complete comparison")
            continue
        decision = peek(subject.view, folder + "/decision.json").get("decision")
        data = peek(subject.view, folder + "/comparison.json")
        if recipe["selected"] != decision:
            yield (at + "/selected", shown(recipe["selected"]), shown(decision))
        setting = data.get("setting") or {}
        if run_name(str(data.get("run"))) != recipe["comparison"]:
            yield (
                at + "/comparison",
                recipe["comparison"],
                "the latest run of its comparison: no earlier one is leant on",
            )
        right = {"argument": setting.get("argument"), "value": setting.get(decision)}
        if recipe["setting"] != right:
            yield (at + "/setting", shown(recipe["setting"]), shown(right))
        told = launch_values(recipe, str(right["argument"]))
        if told != [right["value"]]:
            yield (at + "/arguments", shown(told), shown([right["value"]]))
        for key in ("profile", "engine"):
            if data.get(key) != recipe[key]:
                yield (at + "/comparison", "one of %s %s" % (key, shown(data.get(key))), recipe[key])


def _incomplete(view: View) -> List[str]:
    return [name for name in view.below("results/incomplete") if name.endswith("/comparison.json")]


def _gateway(one: Any) -> Tuple[Any, ...]:
    return (one.get("kind"), one.get("name")) if isinstance(one, dict) else ()


def hold_launch(subject: Inputs) -> Iterator[Complaint]:
    """The arguments of a recipe are those of a launch that it cites: its comparison's selected arm, or its attempt's.

    Its gateway is one of the manifest's, and that of its comparison.
    """
    gateways = [_gateway(one) for one in peek(subject.view, "manifest.json").get("gateways", ())]
    for recipe in subject.recipes:
        at = "%s#%s" % (RECIPES, recipe["id"])
        if recipe["comparison"] is not None:
            name = "results/settings/%s/comparison.json" % recipe["comparison"]
            arm = "B" if recipe["selected"] == "candidate" else "A"
            arms = [one for one in peek(subject.view, name).get("arms", ()) if one.get("arm") == arm]
            launches = [launch for one in arms for launch in one.get("launches", ())]
            gateways = [_gateway(peek(subject.view, name).get("gateway"))]
        else:
            name = str(recipe["requalification"]["attempt"])
            launches = [one for found in subject.attempts if found["row"]["id"] == name for one in found["launches"]]
        if recipe["gateway"] is not None and _gateway(recipe["gateway"]) not in gateways:
            yield (at + "/gateway", shown(recipe["gateway"]), "a gateway of its runs")
        if recipe["arguments"] not in [launch["arguments"] for launch in launches]:
            yield (at + "/arguments", shown(recipe["arguments"], 200), "those of a launch of " + name)


def hold_requalification(subject: Inputs) -> Iterator[Complaint]:
    """A selected candidate says that it needs requalification until an attempt with its value has succeeded."""
    for recipe in subject.recipes:
        at = "%s#%s/requalification" % (RECIPES, recipe["id"])
        told = recipe["requalification"]
        found = next((one for one in subject.attempts if one["row"]["id"] == told["attempt"]), None)
        if told["attempt"] is not None:
            setting = recipe["setting"] or {}
            fits = (
                found is not None
                and found["row"]["outcome"] == "SUCCESS"
                and found["row"]["profile"] == recipe["profile"]
            )
            if fits and found is not None and setting:
                values = {value for launch in found["launches"] for value in launch_values(launch, setting["argument"])}
                fits = values == {setting["value"]}
            if not fits:
                yield (at + "/attempt", shown(told["attempt"]), "a success of this profile with the selected value")
        right = recipe["selected"] == "candidate" and told["attempt"] is None
        if told["required"] is not right:
            yield (at + "/required", shown(told["required"]), shown(right))


def settings_file(recipe: Row) -> bytes:
    """The environment file that follows from a recipe."""

    def word(text: str) -> str:
        return text if PLAIN.match(text) else json.dumps(text)

    lines = ["RECIPE=" + recipe["id"], "PROFILE=" + recipe["profile"], "ENGINE=" + recipe["engine"]]
    lines.append("MODES=" + ",".join(recipe["modes"]))
    lines.append("ARGUMENTS=" + json.dumps(recipe["arguments"]))
    lines.extend("%s=%s" % (name, word(value)) for name, value in sorted(recipe["environment"].items()))
    return ("\n".join(lines) + "\n").encode()


def _plain(data: bytes) -> List[str]:
    """The lines of an environment file; a JSON list of arguments without regard to blanks."""
    lines = []
    for line in data.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        if name == "ARGUMENTS":
            with suppress(JsonFault, TypeError):
                value = json.dumps(read_json(value.encode()), separators=(",", ":"))
        lines.append("%s=%s" % (name, '""' if value in ("", '""') else value))
    return lines


def hold_settings_files(subject: Inputs) -> Iterator[Complaint]:
    """Every recipe has its environment file, line for line, and there is no other."""
    right = {recipe["settingsFile"] for recipe in subject.recipes}
    for recipe in subject.recipes:
        name = recipe["settingsFile"]
        if name != "settings/%s.env" % recipe["id"] or not subject.view.has(name):
            yield ("%s#%s" % (RECIPES, recipe["id"]), "settings file " + shown(name), "settings/%s.env" % recipe["id"])
        else:
            told, wanted = _plain(subject.view.read(name)), _plain(settings_file(recipe))
            for line in sorted(set(told) ^ set(wanted)):
                yield (name, "a difference: " + shown(line), "what follows from its recipe")
    for name in subject.view.below("settings"):
        if name not in right:
            yield (name, "a settings file of no recipe", "one for each recipe")


def hold_rules(subject: Inputs) -> Iterator[Complaint]:
    """A rule is of a recipe and one of its modes, with that mode's strategy, on documentation addresses."""
    recipes = {recipe["id"]: recipe for recipe in subject.recipes}
    for name in subject.view.below("rules"):
        if not RULE.match(name):
            yield (name, "no rule's name", "rules/<recipe>.<mode>.json")
    for name, rule in sorted(subject.rules.items()):
        match = RULE.match(name)
        assert match is not None
        if (rule["recipe"], rule["mode"]) != match.groups():
            yield (name, "%s, %s" % (rule["recipe"], rule["mode"]), "%s, %s" % match.groups())
        recipe = recipes.get(rule["recipe"])
        if recipe is None or rule["mode"] not in recipe["modes"]:
            yield (name, "mode %s of recipe %s" % (rule["mode"], rule["recipe"]), "an accepted mode of a recipe")
        if rule["strategy"] != STRATEGY[rule["mode"]]:
            yield (name, "strategy " + rule["strategy"], STRATEGY[rule["mode"]])
        for key in ("alias", "url"):
            told = [one[key] for one in rule["workers"]]
            if len(set(told)) != len(told):
                yield (name + "#/workers", shown(told), "workers with an %s of their own" % key)
        shared = recipe is not None and recipe["topology"] == "two-worker" and STRATEGY[rule["mode"]] != "direct"
        if shared and len(rule["workers"]) != WORKERS:
            yield (name + "#/workers", "%d workers" % len(rule["workers"]), "%d" % WORKERS)
        for url in [rule["listen"]] + [one["url"] for one in rule["workers"]]:
            host = HOST.match(url)
            if host is None or not DOCUMENTATION.match(host.group(1)):
                yield (name, "address " + shown(url), "one of RFC 5737, RFC 3849 or RFC 2606")


CHECKS = (
    Check(
        "model-files",
        "models/ holds the facts of model-identities.json",
        hold_models,
        (
            Mutation("give a profile another revision", lies.other_revision),
            Mutation("give a profile another licence in its own file", lies.other_licence),
        ),
    ),
    Check(
        "model-definition",
        "each profile's definition is there with its hash",
        hold_definitions,
        (Mutation("alter a source definition", lies.alter_definition),),
    ),
    Check(
        "model-weights",
        "index and checksums are those of the profile",
        hold_weights,
        (
            Mutation("alter a source index", lies.alter_index),
            Mutation("add checksums of a file that the profile does not have", lies.extra_checksums),
            Mutation("write checksums for a profile that never ran", lies.open_gate),
        ),
    ),
    Check(
        "registry",
        "a registry's candidates, probes and token ids agree",
        hold_registries,
        (
            Mutation("register an unlisted profile", lies.register_unlisted),
            Mutation("expect another token", lies.expect_another),
            Mutation("probe an unlisted profile", lies.probe_unlisted),
            Mutation("register candidates for another engine", lies.other_engine),
            Mutation("register candidates for another adapter", lies.other_adapter),
        ),
    ),
    Check(
        "recipe-case",
        "a recipe is of a case that succeeded, in modes that an attempt bears",
        hold_recipes,
        (
            Mutation("let a recipe permit a mode that nothing bears", lies.other_mode),
            Mutation("write a recipe for another profile", lies.other_profile),
        ),
    ),
    Check(
        "recipe-selection",
        "a selected value is the one that its comparison decided for",
        hold_selection,
        (
            Mutation("select the other value", lies.other_value),
            Mutation("launch a recipe without its setting", lies.no_setting),
            Mutation("promote an incomplete comparison", lies.promote_incomplete),
            Mutation("lean on an earlier run of a comparison", lies.lean_on_earlier),
        ),
    ),
    Check(
        "recipe-launch",
        "a recipe's arguments are those of a launch that it cites",
        hold_launch,
        (
            Mutation("launch a recipe otherwise than its comparison", lies.launch_unlike_comparison),
            Mutation("launch a recipe otherwise than its attempt", lies.launch_unlike_attempt),
            Mutation("put a recipe behind another gateway", lies.other_gateway),
        ),
    ),
    Check(
        "recipe-requalification",
        "a selected candidate says that it needs requalification",
        hold_requalification,
        (
            Mutation("turn a recipe's requalification round", lies.turn_requalification),
            Mutation("requalify by an attempt that is not there", lies.requalify_by_nobody),
        ),
    ),
    Check(
        "settings-file",
        "every settings file follows from its recipe",
        hold_settings_files,
        (Mutation("add a line to a settings file", lies.extra_line),),
    ),
    Check(
        "rule",
        "rules are of accepted modes and on documentation addresses",
        hold_rules,
        (
            Mutation("route to an address in use", lies.address_in_use),
            Mutation("route by another strategy", lies.other_strategy),
            Mutation("write another recipe into a rule", lies.other_recipe),
            Mutation("route all to one of two workers", lies.route_to_one),
            Mutation("leave out a worker of a rule", lies.forget_worker),
        ),
    ),
)

FAMILY = Family(kind="package", find=lambda view: [""], open=Inputs, checks=CHECKS, documents=documents)
