"""manifest.json: counts, dates, boundaries, the synthetic statement, and the recorder that made the ledgers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.listing import one_of_hashes
from checking.package import View
from checking.plan import MAIN_TOTAL, WARM_TOTAL
from checking.reading import shown
from checking.rules import shapes_manifest
from checking.rules.comparison import peek
from checking.shape import Shape

lies = Later("checking.rules.manifest_lies")

NAME = "manifest.json"
PROXY = "receipt-proxy.py"
README = "README.md"
ALWAYS = (
    "not-release-qualification",
    "not-optimum",
    "not-sla",
    "not-model-maximum",
    "snapshot-not-peak",
    "one-prefill-only",
)
SYNTHETIC = "not-gpu-result"
_BODY = re.compile(r"results/(?:settings|converged|incomplete)/[^/]+/bodies/[0-9a-f]{64}\Z")


_TOLD = ("run", "id", "synthetic", "campaign", "startedAt", "endedAt", "gateway")
_TOLD_OF_CASE = ("case", "profile", "engine", "surface", "topology")


def _told(view: View, name: str) -> Dict[str, Any]:
    """What a manifest has to agree with in a comparison or an attempt; the rest of it is forgotten."""
    one = peek(view, name)
    if not isinstance(one, dict):
        return one  # type: ignore[no-any-return]
    told = {key: one[key] for key in (*_TOLD, *_TOLD_OF_CASE) if key in one}
    arms = one["arms"] if isinstance(one.get("arms"), list) else ()
    told["arms"] = [{"startedAt": arm.get("startedAt")} for arm in arms if isinstance(arm, dict)]
    return told


class Manifest:
    """The manifest, and what it speaks of, as far as other files tell it."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.data: Dict[str, Any] = scope.document(NAME)
        self.comparisons = [_told(self.view, one + "/comparison.json") for one in self.view.folders("results/settings")]
        self.attempts = [_told(self.view, one + "/attempt.json") for one in self.view.folders("results/converged")]
        self.incomplete = [
            _told(self.view, one + "/comparison.json") for one in self.view.folders("results/incomplete")
        ]
        self.matrix: Dict[str, Any] = peek(self.view, "runtime-matrix.json")
        self.identities: Dict[str, Any] = peek(self.view, "model-identities.json")
        self.lifecycle: Dict[str, Any] = peek(self.view, "results/lifecycle-index.json")

    def runs(self) -> List[Dict[str, Any]]:
        """Everything that a run left."""
        return [one for one in self.comparisons + self.attempts + self.incomplete if isinstance(one, dict)]


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The manifest."""
    return [(NAME, shapes_manifest.MANIFEST)]


def hold_counts(subject: Manifest) -> Iterator[Complaint]:
    """Every count is that of what is there."""
    entries = subject.view.listing()
    bodies = sum(_bodies(folder, entries.joined(folder)) for folder in entries.all_folders())
    bodies += sum(bool(_BODY.match(name)) for name in entries.odd())
    right = {
        "profiles": len(subject.identities.get("profiles", ())),
        "cases": len(subject.matrix.get("rows", ())),
        "attempts": len(subject.attempts),
        "comparisons": len(subject.comparisons),
        "incompleteComparisons": len(subject.incomplete),
        "mainSamples": len(subject.comparisons) * MAIN_TOTAL,
        "warmSamples": len(subject.comparisons) * WARM_TOTAL,
        "bodies": bodies,
        "lifecycleRecords": len(subject.lifecycle.get("records", ())),
    }
    for key, value in right.items():
        if subject.data["counts"][key] != value:
            yield ("%s#/counts/%s" % (NAME, key), str(subject.data["counts"][key]), str(value))


@lru_cache(maxsize=None)
def _bodies(folder: str, joined: str) -> int:
    if not folder.endswith("/bodies"):
        return 0
    hashed = one_of_hashes(joined)
    if hashed and _BODY.match("%s/%s" % (folder, hashed)):
        return joined.count("/")
    return sum(bool(_BODY.match("%s/%s" % (folder, name))) for name in joined.split("/")[:-1])


def hold_proxy(subject: Manifest) -> Iterator[Complaint]:
    """The recorder that lies in the package is the one that the manifest names."""
    if not subject.view.has(PROXY):
        yield (PROXY, "no such file", "the recorder that made the ledgers")
    elif subject.view.digest(PROXY) != subject.data["proxySha256"]:
        yield (NAME + "#/proxySha256", subject.data["proxySha256"], subject.view.digest(PROXY))


def hold_boundaries(subject: Manifest) -> Iterator[Complaint]:
    """Every boundary of the claim is stated; that no figure is a GPU's, where anything is synthetic."""
    told = [one["id"] for one in subject.data["boundaries"]]
    wanted = list(ALWAYS) + ([SYNTHETIC] if subject.data["synthetic"] != "none" else [])
    for name in wanted:
        if told.count(name) != 1:
            yield (NAME + "#/boundaries", "%s stated %d times" % (name, told.count(name)), "once")
    own = ["limitation-%d" % (number + 1) for number in range(sum(one.startswith("limitation-") for one in told))]
    for name in told:
        if name not in ALWAYS and name != SYNTHETIC and name not in own:
            yield (NAME + "#/boundaries", shown(name), "a boundary that the format knows")


def hold_synthetic(subject: Manifest) -> Iterator[Complaint]:
    """`synthetic` says how much the synthetic engine made, and the statement says it in words."""
    made = [bool(one.get("synthetic")) for one in subject.runs()]
    right = "none" if not any(made) else "all" if all(made) else "some"
    if subject.data["synthetic"] != right:
        yield (NAME + "#/synthetic", subject.data["synthetic"], right)
    if subject.data["synthetic"] != "none" and "synthetic" not in subject.data["statement"].lower():
        yield (NAME + "#/statement", shown(subject.data["statement"]), "a statement that says synthetic")
    for one in subject.data["engines"]:
        if one["synthetic"] is not (one["adapter"] == "synthetic"):
            yield ("%s#/engines/%s/synthetic" % (NAME, one["id"]), shown(one["synthetic"]), shown(not one["synthetic"]))


def hold_engines(subject: Manifest) -> Iterator[Complaint]:
    """Each engine stands once, and every run names one of them."""
    ids = [one["id"] for one in subject.data["engines"]]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield (NAME + "#/engines", shown(name) + " twice", "each engine once")
    for one in subject.runs():
        if one.get("engine") not in ids and "engine" in one:
            yield (
                NAME + "#/engines",
                "no engine %s, of run %s" % (shown(one["engine"]), shown(one.get("run"))),
                "every engine that ran",
            )


def hold_status(subject: Manifest) -> Iterator[Complaint]:
    """Only a preparation is not final, and its archive says so in its name."""
    final = subject.data["status"] == "FINAL"
    told = subject.data["distribution"]
    if told["preparation"] is final:
        yield (NAME + "#/distribution/preparation", shown(told["preparation"]), shown(not final))
    if not final and "preparation" not in told["archive"].lower() and "not-final" not in told["archive"].lower():
        yield (NAME + "#/distribution/archive", shown(told["archive"]), "a name that says preparation")
    if subject.matrix and subject.matrix.get("status") != subject.data["status"]:
        yield (NAME + "#/status", subject.data["status"], "that of the matrix: " + shown(subject.matrix.get("status")))


def hold_campaign(subject: Manifest) -> Iterator[Complaint]:
    """One campaign names the top folder, the archive, the matrix and every comparison."""
    name = subject.data["campaign"]
    told = subject.data["distribution"]
    if told["topFolder"] != name or not told["archive"].startswith(name + "-"):
        yield (NAME + "#/distribution", "%s in %s" % (told["archive"], told["topFolder"]), "both named " + name)
    if subject.matrix and subject.matrix.get("campaign") != name:
        yield ("runtime-matrix.json#/campaign", shown(subject.matrix.get("campaign")), name)
    for one in subject.comparisons + subject.incomplete:
        if one.get("campaign") not in (name, None):
            yield (NAME + "#/campaign", name, "that of run %s: %s" % (shown(one.get("run")), shown(one["campaign"])))


def hold_dates(subject: Manifest) -> Iterator[Complaint]:
    """The dates span every run that ended; a run that was killed began, and nobody knows its end."""
    first, last = subject.data["dates"]["firstRunStartedAt"], subject.data["dates"]["lastRunEndedAt"]
    starts = [one["startedAt"] for one in subject.attempts if isinstance(one.get("startedAt"), str)]
    ends = [one["endedAt"] for one in subject.attempts if isinstance(one.get("endedAt"), str)]
    for group, known in ((subject.comparisons, [starts, ends]), (subject.incomplete, [starts])):
        for one in group:
            begun = [arm["startedAt"] for arm in one.get("arms", ()) if isinstance(arm.get("startedAt"), str)]
            for instants in known:
                instants.extend(begun)
    if starts and (first is None or first > min(starts)):
        yield (NAME + "#/dates/firstRunStartedAt", shown(first), "not after " + min(starts))
    if ends and (last is None or last < max(ends)):
        yield (NAME + "#/dates/lastRunEndedAt", shown(last), "not before " + max(ends))


def _gateway(one: Dict[str, Any]) -> Tuple[Any, ...]:
    return one.get("kind"), one.get("name"), one.get("sha256")


def hold_gateways(subject: Manifest) -> Iterator[Complaint]:
    """Every gateway that a comparison or an attempt went through stands in the manifest, and no other.

    The hash of a gateway that is not built in may be declared where the run could not take it.
    """
    told = {_gateway(one) for one in subject.data["gateways"]}
    if len(told) != len(subject.data["gateways"]):
        yield (NAME + "#/gateways", "a gateway twice", "each once")
    seen = set()
    for one in subject.runs():
        gateway = one.get("gateway")
        if isinstance(gateway, dict):
            kind, name, digest = _gateway(gateway)
            loose = digest is None and kind != "built-in"
            fits = {each for each in told if each[:2] == (kind, name) and (loose or each[2] == digest)}
            seen |= fits
            if not fits and one not in subject.incomplete:
                yield (
                    NAME + "#/gateways",
                    "none of kind %s, name %s, sha256 %s" % (shown(kind), shown(name), shown(digest)),
                    "that of run " + shown(one.get("run")),
                )
    for kind, name, digest in sorted(told - seen, key=str):
        yield (
            NAME + "#/gateways",
            "%s %s, sha256 %s, that no run went through" % (shown(kind), shown(name), shown(digest)),
            "gateways of comparisons and attempts",
        )


def hold_cases(subject: Manifest) -> Iterator[Complaint]:
    """The case of a comparison is a round-robin row of the matrix, of its profile, engine and topology."""
    rows = {row.get("case"): row for row in subject.matrix.get("rows", ()) if isinstance(row, dict)}
    for one in subject.comparisons + subject.incomplete:
        if "case" not in one:
            continue
        row = rows.get(one["case"], {})
        for key in ("surface", "topology", "profile", "engine"):
            if row.get(key) != one.get(key):
                yield (
                    "runtime-matrix.json#%s/%s" % (one["case"], key),
                    shown(row.get(key)),
                    "that of comparison %s: %s" % (shown(one.get("id")), shown(one.get(key))),
                )


def guide(data: Dict[str, Any]) -> str:
    """What README.md says first: title, statement, counts, status, and every boundary; blanks and line ends do not count."""
    counts = dict(data["counts"], status=data["status"], synthetic=data["synthetic"])
    told = (
        "{profiles} requested profiles, {cases} cases, {attempts} functional attempts, {comparisons} complete comparisons "
        "({mainSamples} main and {warmSamples} warm samples), {incompleteComparisons} that did not finish, "
        "{lifecycleRecords} lifecycle records. Matrix status: {status}. Synthetic: {synthetic}."
    ).format(**counts)
    parts = ["#", data["title"], data["statement"], told] + ["* " + one["statement"] for one in data["boundaries"]]
    return " ".join(" ".join(parts).split())


def _words(data: Optional[bytes]) -> str:
    return "" if data is None else " ".join(data.decode("utf-8", "replace").split())


def hold_readme(subject: Manifest) -> Iterator[Complaint]:
    """README.md begins with what the manifest says, and verifies the archive that the manifest names."""
    told = subject.view.derive(README, _words)
    right = guide(subject.data)
    if not told.startswith(right + " "):
        same = next((n for n, (one, other) in enumerate(zip(told, right)) if one != other), min(len(told), len(right)))
        yield (README, "..." + shown(told[max(0, same - 30) : same + 40]), shown(right[max(0, same - 30) : same + 40]))
    name, archive = subject.data["campaign"], subject.data["distribution"]["archive"]
    for line in ("sha256sum -c %s.sha256" % archive, "cd " + name, "sha256sum -c SHA256SUMS"):
        if line not in told:
            yield (README, "no line " + shown(line), "how to verify the archive of the manifest")


CHECKS = (
    Check(
        "manifest-counts",
        "every count of the manifest is that of what is there",
        hold_counts,
        (
            Mutation("count a comparison more", lies.more_comparisons),
            Mutation("count bodies that are not there", lies.more_bodies),
            Mutation("count no profiles", lies.no_profiles),
        ),
    ),
    Check(
        "manifest-proxy",
        "the recorder in the package is the one that the manifest names",
        hold_proxy,
        (Mutation("alter the recorder", lies.other_recorder),),
    ),
    Check(
        "manifest-boundaries",
        "every boundary of the claim is stated",
        hold_boundaries,
        (
            Mutation("drop the boundary about service levels", lies.drop_boundary),
            Mutation("add a boundary under a name of its own", lies.add_boundary),
        ),
    ),
    Check(
        "manifest-synthetic",
        "the manifest says what the synthetic engine made",
        hold_synthetic,
        (
            Mutation("call synthetic results real", lies.deny_synthetic),
            Mutation("call the synthetic engine a real one", lies.claim_gpu),
        ),
    ),
    Check(
        "manifest-engines",
        "each engine that ran stands in the manifest once",
        hold_engines,
        (Mutation("rename an engine in the manifest", lies.rename_engine),),
    ),
    Check(
        "manifest-status",
        "only a preparation is not final",
        hold_status,
        (Mutation("call a preparation final, or the other way round", lies.flip_preparation),),
    ),
    Check(
        "manifest-campaign",
        "one campaign names the folder, the archive and the runs",
        hold_campaign,
        (Mutation("rename the campaign", lies.rename_campaign),),
    ),
    Check(
        "manifest-dates",
        "the dates of the manifest span every run",
        hold_dates,
        (Mutation("let the first run begin in the far future", lies.begin_later),),
    ),
    Check(
        "manifest-gateways",
        "the manifest's gateways are those of comparisons and attempts",
        hold_gateways,
        (
            Mutation("drop a gateway from the manifest", lies.drop_gateway),
            Mutation("give a gateway another hash", lies.other_gateway_hash),
            Mutation("name a gateway that nothing went through", lies.unused_gateway),
        ),
    ),
    Check(
        "manifest-case",
        "the case of a comparison is a round-robin row of the matrix",
        hold_cases,
        (Mutation("let a comparison cite a native case", lies.other_case),),
    ),
    Check(
        "manifest-readme",
        "the guide begins with the counts and boundaries of the manifest",
        hold_readme,
        (
            Mutation("write more complete comparisons into the guide", lies.more_complete),
            Mutation("empty the guide", lies.empty_guide),
            Mutation("leave the boundary about service levels out of the guide", lies.shorten_guide),
            Mutation("let the guide verify another archive", lies.other_archive),
        ),
    ),
)

FAMILY = Family(kind="package", find=lambda view: [""], open=Manifest, checks=CHECKS, documents=documents)
