"""Recipes, their environment files, and routing rules on documentation addresses; accepted modes only."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from evidence import records
from evidence.build import matrix as matrices
from evidence.build.comparisons import Settled
from evidence.build.converged import Packed
from evidence.build.tree import Tree
from evidence.campaign import Campaign, Recipe

PLAIN = re.compile(r"[A-Za-z0-9_./:,=+-]*")
STRATEGIES = {"native": "direct", "rr": "round-robin", "exact": "exact-prefix", "native-pd": "direct"}
# RFC 5737, RFC 3849 and RFC 2606: none of these is anybody's.
LISTEN = "http://192.0.2.1:8080"
WORKERS = ("http://198.51.100.11:8000", "http://198.51.100.12:8000")
NOTE = (
    "An example on documentation addresses (RFC 5737). Put the addresses that were given to you in their place, on an "
    "isolated gateway and dedicated workers, and delete only this rule afterwards."
)


def pack(
    campaign: Campaign,
    tree: Tree,
    matrix: records.RuntimeMatrix,
    settled: Sequence[Settled],
    packed: Sequence[Packed],
    *,
    preparation: bool,
) -> None:
    """recipes.json, settings/ and rules/.

    A recipe with a mode that the matrix does not accept is a reason against the package; in a preparation artifact
    it is left out instead.
    """
    found = []
    for recipe in sorted(campaign.recipes.values(), key=lambda recipe: recipe.id):
        record, lacking = _recipe(campaign, recipe, matrix, settled, packed)
        if record is not None:
            found.append(record)
            tree.add(record.settings_file, render_settings(record))
            for mode in record.modes:
                tree.add(f"rules/{record.id}.{mode}.json", records.to_bytes(_rule(record, mode)))
        elif not preparation:
            tree.refusals.append(f"recipe {recipe.id}: {lacking}")
    tree.add("recipes.json", records.to_bytes(records.Recipes(found)))


def _recipe(
    campaign: Campaign,
    recipe: Recipe,
    matrix: records.RuntimeMatrix,
    settled: Sequence[Settled],
    packed: Sequence[Packed],
) -> tuple[records.Recipe | None, str]:
    case = campaign.cases[recipe.case]
    accepted = matrices.accepted_modes(matrix, case)
    refused = [mode for mode in recipe.modes if mode not in accepted]
    if refused:
        outcomes = {
            row.surface: row.outcome for row in matrix.rows if row.profile == case.profile and row.engine == case.engine
        }
        return (
            None,
            f"found mode {refused[0]}, which the matrix shows as {outcomes.get(refused[0], 'no case')}, expected SUCCESS",
        )
    own = next((row.outcome for row in matrix.rows if row.case == case.id), "no case")
    if own != "SUCCESS":
        return None, f"found its case {case.id}, which the matrix shows as {own}, expected SUCCESS"
    choice = [one for one in settled if one.comparison == recipe.comparison]
    if recipe.comparison is not None and not choice:
        return None, f"found no complete run of comparison {recipe.comparison}, expected one to choose from"
    if recipe.comparison is not None:
        latest = choice[-1]
        selected: str | None = latest.decision.decision
        launch = latest.launches[latest.decision.decision]
        gateway: records.Gateway | None = latest.gateway
        comparison = campaign.comparisons[recipe.comparison]
        value = comparison.candidate if selected == "candidate" else comparison.baseline
        setting = records.RecipeSetting(comparison.argument, value)
        again = requalifying(campaign, recipe.comparison, packed, latest.started_at)
        requalification = _requalification(latest, again)
    else:
        decided = {row.decided_by for row in matrix.rows if row.case == case.id or row.surface in recipe.modes}
        borne = [one.attempt for one in packed if one.attempt.id in decided and one.attempt.launches and _same(one, case.profile, case.engine, case.topology)]  # fmt: skip
        if not borne:
            return None, f"found no launch in an attempt at {case.id}, expected the one that succeeded"
        attempt = next((one for one in borne if one.case == case.id), borne[-1])
        selected, setting, launch, gateway = None, None, attempt.launches[0], attempt.gateway
        requalification = records.Requalification(False, attempt.id, "the launch is that of the accepted attempt")
    return records.Recipe(
        id=recipe.id,
        case=case.id,
        profile=case.profile,
        engine=case.engine,
        topology=case.topology,
        modes=list(recipe.modes),
        arguments=list(launch.arguments),
        environment=dict(launch.environment) | dict(recipe.environment),
        comparison=latest.entry.id if recipe.comparison is not None else None,
        selected=selected,
        setting=setting,
        requalification=requalification,
        gateway=None if gateway is None else records.RecipeGateway(gateway.kind, gateway.name),
        scope=recipe.scope,
        settings_file=f"settings/{recipe.id}.env",
    ), ""


def _same(one: Packed, profile: str, engine: str, topology: str) -> bool:
    return (one.attempt.profile, one.attempt.engine, one.attempt.topology) == (profile, engine, topology)


def requalifying(campaign: Campaign, name: str, packed: Sequence[Packed], after: str) -> str | None:
    """The latest accepted attempt with the candidate's setting on its launch, made after the comparison began."""
    comparison = campaign.comparisons[name]
    case = campaign.cases[comparison.case]
    found = None
    for one in packed:
        attempt = one.attempt
        if not _same(one, case.profile, case.engine, case.topology) or not attempt.scope.accepted:
            continue
        if attempt.started_at > after and all(
            _sets(launch.arguments, comparison.argument, comparison.candidate) for launch in attempt.launches
        ):
            found = attempt.id
    return found


def _sets(arguments: Sequence[str], argument: str, value: str) -> bool:
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(pair == (argument, value) or pair[0] == f"{argument}={value}" for pair in pairs)


def _requalification(latest: Settled, attempt: str | None) -> records.Requalification:
    if latest.decision.decision == "baseline":
        return records.Requalification(
            False, None, "the baseline stands; nothing was changed that needs its own attempt"
        )
    if attempt is not None:
        return records.Requalification(False, attempt, "an attempt of its own with the candidate's setting succeeded")
    statement = (
        "the candidate won its comparison; a functional attempt of its own with this setting is still to be made"
    )
    return records.Requalification(True, None, statement)


def render_settings(recipe: records.Recipe) -> bytes:
    """settings/<recipe>.env: five lines about the recipe, then its environment, one NAME=value a line."""
    lines = [
        ("RECIPE", recipe.id),
        ("PROFILE", recipe.profile),
        ("ENGINE", recipe.engine),
        ("MODES", ",".join(recipe.modes)),
    ]
    text = "".join(f"{name}={value}\n" for name, value in lines)
    text += f"ARGUMENTS={json.dumps(list(recipe.arguments), ensure_ascii=False, separators=(',', ':'))}\n"
    environment: Mapping[str, str] = recipe.environment
    for name in sorted(environment):
        value = environment[name]
        quoted = value if PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
        text += f"{name}={quoted}\n"
    return text.encode()


def _rule(recipe: records.Recipe, mode: str) -> records.Rule:
    count = 1 if recipe.topology == "single" else len(WORKERS)
    workers = [records.RuleWorker(f"worker-{place}", url) for place, url in enumerate(WORKERS[:count], 1)]
    return records.Rule(recipe.id, mode, LISTEN, STRATEGIES[mode], workers, NOTE)
