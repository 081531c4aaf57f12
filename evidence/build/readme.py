"""The two guides of a package: the full one inside the archive, and that of the folder a repository retains.

They are written from the manifest, so that names, counts and limits are those of the package at hand.
"""

from __future__ import annotations

from evidence import records

VERIFIERS = ("verify-results.py", "verify-incomplete-results.py", "verify-converged.py", "verify-lifecycle.py")

_CONTENTS = """\
| Path | What it is |
|---|---|
| `manifest.json` | distribution, engine versions, gateways by hash, counts, and what is not claimed |
| `model-identities.json`, `models/` | repositories, full revisions, artifact hashes, where each chat template comes from; states of an older catalog apart |
| `source-definitions/` | the profiles as they were requested, original bytes |
| `registry-<engine>/` | candidates for one engine version, with original probes and expected token ids; a candidate has not run because it stands here |
| `weights/*.source-index` | the whole index of a model's repository, bound by its SHA-256 in the profile |
| `weights/*.sha256` | expected checksums of the model's files; absent for gated profiles that never ran and for deferred ones |
| `recipes.json`, `settings/` | literal launch parameters of accepted cases, each with its scope, its permitted modes and whether it still needs a requalification |
| `rules/` | routing examples on documentation addresses, accepted modes only |
| `runtime-matrix.json` | how every case ended, every blocker named |
| `results/converged-index.json`, `results/converged/` | every functional attempt, failed set-ups and capped answers too: client bodies, ledgers, controls, scope |
| `results/settings-index.json`, `results/settings/` | every complete comparison, rejected candidates too: all samples with times, ledgers, bodies, snapshots, decision |
| `results/incomplete-settings-index.json`, `results/incomplete/` | every offer of every comparison that did not finish |
| `results/pd-index.json` | reviewed summaries of prefill/decode cases, failed ones with reason codes |
| `results/lifecycle-index.json`, `results/lifecycle/` | records of co-residency, crash and adapter experiments |
| `schemas/` | the JSON Schema of each of these files |
| `receipt-proxy.py` | the recorder that stood before each worker and wrote the ledgers; a tool of this evaluation, no part of a product |
| `verify-*.py`, `checking/`, `CHECKS.md` | the verifiers, the rules that they run, and what each code means |
| `SHA256SUMS` | every file here but itself |
"""

_OUTCOMES = """\
Outcomes are nine and are never merged: access blocked, image missing, storage missing, native failure, exact
admission rejected, exact admission engaging one prefill only, success, deferred by the user, not attempted. A row
of the matrix is decided by the latest attempt that ended. A matrix with the status IN_PROGRESS_NOT_FINAL belongs to a
preparation artifact and is not a delivery.
"""

READING = """\
* A complete comparison changes one launch argument. Both arms use the same two devices, one fixed JSON body, a
  fixed temperature and output budget and a concurrency of 8, with 24 main requests an arm, in three paired repetitions
  in the order A/B, B/A, A/B. Before its main batch an arm sends one native JSON warm-up to each worker and then 16
  round-robin warm-ups at once, of which each worker must get 8. So there are 144 main and 108 warm samples, kept apart,
  and none is left out.
* TTFT runs from the first byte of the request to the first non-empty `delta.content` at the client. White space
  counts, and so does reasoning that an engine sends as content; reasoning in a field of its own does not start
  this clock. It is not the time to the final answer.
* p95 is the nearest rank within one arm: the 23rd of 24 values. Nothing is interpolated. A failed or missing main
  sample is not dropped from a percentile, it disqualifies the comparison.
* Bytes of a stream have no time stamps, so nobody can derive the client's times from the bodies. Times and wall
  times are recorded measurements; everything else in a sample follows from the stored bytes.
* The memory snapshot of an arm is taken after the native warm-ups and before the round-robin ones. It is not the peak
  while requests run and not a long idle measurement. Its source is named: only `nvml` speaks of a GPU; `process-rss` is
  resident memory of a process, `synthetic` is what the synthetic engine says of itself.
* Gates: in every repetition the arms' completion tokens differ by at most 5 % of the baseline's. A lower memory setting
  also needs at least 30 % less recorded allocation on each device in each pair, and in no pair a p95 more than 5 %
  above the baseline's. A higher sequence cap needs a better p95 in all three pairs and a median relative improvement of
  at least 10 %. One failed gate keeps the baseline.
* A candidate that was selected still needs a functional attempt of its own; its recipe says so until there is one.
  Prefill/decode cases keep the sequence cap and memory geometry that they were tested with.
* `performanceComparisonQualified: false` is never an accepted improvement of latency.
* A comparison that did not finish is not mended by pooling what succeeded in it, and nothing is selected from it; its
  offers are all here, also those of a batch that never reached a summary. After a client's time-out the bytes that the
  client had and the bytes that the proxy had seen from the worker are kept apart, each with its hash. What the
  proxy had is never an answer.
* For date-sensitive models the same API body can render to another input on another day. Such a comparison carries
  the time zone of the run (UTC), one constant date, and the token ids of the rendered input on every worker in every arm,
  which must be equal. No chat template was rewritten for that.
* Exact traffic that engaged one prefill worker proves engagement only.
"""

DISCLAIMED = """\
Functional success, arithmetic that was verified, and a recipe with a bounded scope do not establish an optimum over
all settings, a ranking of engines, the accuracy of answers in any language or task, capacity for long contexts or high
concurrency, the continuity of open streams, recovery after the crash of an engine beyond a lifecycle record, transfer
bandwidth between prefill and decode, or a service level. Context lengths and output budgets are settings of
this campaign, not limits of a model. A package that was invented as a whole, consistently, cannot be told from a real
one by any verifier.
"""

_LIMITS = """\
Not in here: model weights, tokenizer or template bytes, credentials, container inspections, private addresses, session
state of a transfer between engines, the gateway's binary. Get model files from the exact official revision with
the access that you have. A hash of a tokenizer or template says which bytes are expected; it grants no access to them
and no right to pass them on. Checksum files alone do not prove that anybody downloaded those weights or that they ran:
that is what the matrix and the scope of each recipe are for. That a deferred or gated profile is described here is no
permission to try access again, and says nothing about tested settings.

## Privacy

Request bodies are synthetic and stand here as they were sent. Workers and devices have aliases; ports, addresses,
folders and container names in launch arguments are placeholders, and the SHA-256 of the original arguments keeps the
reference. A control that would show details of the deployment is withheld, with the reason and the hash of its body.
The prefill/decode index holds reviewed summaries: bodies of both roles, preserved state, transfer counters, negatives,
recovery and clean-up were reviewed on private evidence that is not published, so the verifiers here do not derive them
again. A failed case has only the checks that it completed.
"""

_USING = """\
## Before you use a setting

Read the environment file first and match its case, engine and permitted modes with what you have. Put allocated test
addresses in place of those in `rules/`. Use a gateway and workers of your own for it, delete only the rule that you
reviewed, stop only processes or containers that you own by name, and leave caches, other workloads and evidence as they
are. Round robin over two workers is the normal procedure; exact admission is a separate, optional run. Keep model
downloads, receipts and every output of a run outside this folder: it is not to be changed.

After weights were downloaded, `sha256sum -c` in the model's folder with `weights/<profile>.sha256`, or
`evidence weights check PROFILE FOLDER --package .`, says whether they are the ones meant here.
"""


def unpacking(name: str, archive: str) -> str:
    """The commands from a downloaded archive to a folder whose every byte is checked."""
    return f"""sha256sum -c {archive}.sha256 || exit 1
test ! -e {name} || exit 1
tar -xzf {archive} || exit 1
cd {name} || exit 1
sha256sum -c SHA256SUMS || exit 1"""


def verification() -> str:
    """The commands by which the verifiers in an unpacked package are run."""
    return "\n".join(f"python3 {script} --mutation-control" for script in VERIFIERS)


def full(manifest: records.Manifest, matrix: records.RuntimeMatrix) -> bytes:
    """The guide inside the archive."""
    name, archive = manifest.campaign, manifest.distribution.archive
    counts = manifest.counts
    return f"""# {manifest.title}

{manifest.statement}

{counts.profiles} requested profiles, {counts.cases} cases, {counts.attempts} functional attempts, {counts.comparisons} complete
comparisons ({counts.main_samples} main and {counts.warm_samples} warm samples), {counts.incomplete_comparisons} that did not finish,
{counts.lifecycle_records} lifecycle records. Matrix status: {matrix.status}. Synthetic: {manifest.synthetic}.

{_boundaries(manifest)}
{_OUTCOMES}
## Verify before you use anything

Save `{archive}` and `{archive}.sha256` into a new folder. Nothing but python3 and coreutils is needed:

```
{unpacking(name, archive)}
{verification()}
```

Each verifier uses Python's standard library alone (3.8 or newer), opens no socket and writes nothing here. It
exits with 0 when verified, 1 when rejected, 2 when it could not run, and 3 when a mutation control got past it: then trust
nothing that it said. A mutation control alters a receipt's hash in a temporary copy and runs the real verifier on it,
which must reject it; `--mutation-control=all` does so for every code in `CHECKS.md`. `--json` prints the findings
as one document.

## Contents

{_CONTENTS}
## How to read the results

{READING}
## What this does not show

{DISCLAIMED}
{_LIMITS}
{_USING}""".encode()


def partial(manifest: records.Manifest, archive_sha256: str, members: int) -> bytes:
    """The guide of the retained folder: what is missing here, and where it is."""
    archive = manifest.distribution.archive
    return f"""# {manifest.title}: retained files

{manifest.statement}

This folder is a part. It keeps what is worth reading and comparing in a repository: settings, profile metadata, checksums of
source indices, routing examples, summary metadata and the tools. Bodies, ledgers, samples, the result indices and the
token probes are in the archive alone:

* archive: `{archive}`, {members} files
* SHA-256: `{archive_sha256}`

Do not run the verifiers or start anything from here; they refuse to run without the results. A clone or a source archive
of the repository is not the package either. Get `{archive}` and `{archive}.sha256`, and unpack them into a new folder:

```
{unpacking(manifest.campaign, archive)}
```

Then follow the README there: it is the full guide, and its text differs from this one. Every other file here has the same
bytes as in the archive. `SHA256SUMS` here covers the files kept here; the archive has its own over the whole of it.

{_boundaries(manifest)}
{_OUTCOMES}
## Maintenance

With the `evidence` package installed, beside the archive:

```
evidence validate {archive} --source-root {manifest.campaign} --verify-results
```

It checks the archive's digest, refuses unsafe members, unpacks into a temporary folder, checks every file against its
checksum and the reproduction inputs against one another, compares the files kept here with the archive's bytes, and
runs the real verifiers with mutation controls. It starts no gateway, downloads no model and qualifies nothing new.
""".encode()


def _boundaries(manifest: records.Manifest) -> str:
    return "".join(f"* {boundary.statement}\n" for boundary in manifest.boundaries)
