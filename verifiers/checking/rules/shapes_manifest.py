"""The shape of manifest.json."""

from __future__ import annotations

from checking.rules.shapes import GATEWAY_KIND, PATH
from checking.shape import BOOL, COUNT, HASH, ID, INSTANT, LINE, REVISION, VERSION, Keys, ListOf, Maybe, OneOf

MANIFEST = Keys(
    schemaVersion=VERSION,
    campaign=ID,
    title=LINE,
    status=OneOf("FINAL", "IN_PROGRESS_NOT_FINAL"),
    distribution=Keys(archive=LINE, topFolder=ID, preparation=BOOL),
    synthetic=OneOf("none", "some", "all"),
    statement=LINE,
    engines=ListOf(
        Keys(
            id=ID,
            adapter=OneOf(
                "vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers-serve", "sie", "synthetic", "command"
            ),
            version=LINE,
            synthetic=BOOL,
            registry=Maybe(PATH),
            identity=ListOf(Keys(name=LINE, value=LINE, sha256=Maybe(HASH))),
            source=OneOf("reported", "declared"),
        )
    ),
    gateways=ListOf(
        Keys(kind=GATEWAY_KIND, name=LINE, sha256=Maybe(HASH), sourceCommit=Maybe(REVISION), reason=Maybe(LINE))
    ),
    boundaries=ListOf(Keys(id=LINE, statement=LINE), least=1),
    privacyExceptions=ListOf(Keys(pattern=LINE, kind=LINE, reason=LINE)),
    counts=Keys(
        profiles=COUNT,
        cases=COUNT,
        attempts=COUNT,
        comparisons=COUNT,
        incompleteComparisons=COUNT,
        mainSamples=COUNT,
        warmSamples=COUNT,
        bodies=COUNT,
        lifecycleRecords=COUNT,
    ),
    builder=Keys(name=LINE, version=LINE),
    proxySha256=HASH,
    dates=Keys(firstRunStartedAt=Maybe(INSTANT), lastRunEndedAt=Maybe(INSTANT)),
)
