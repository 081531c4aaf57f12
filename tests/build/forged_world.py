"""A campaign with forged runs, and what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.forged_runs import Shape, forge_attempt, forge_comparison, write_campaign
from evidence.build.package import Built, build
from evidence.campaign import Campaign

PROFILES = {"one": "accessible", "two": "gated", "three": "deferred"}


@dataclass
class World:
    """A campaign, its runs, and where its package goes."""

    folder: Path
    campaign: Campaign

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def compare(self, name: str = "compare-1", number: int = 0, shape: Shape | None = None) -> Path:
        return forge_comparison(self.runs, self.campaign, name, number, shape)

    def attempt(self, name: str, number: int = 10, **more: object) -> Path:
        return forge_attempt(self.runs, self.campaign, name, number, **more)  # type: ignore[arg-type]

    def build(self, *, preparation: bool = False) -> Built:
        return build(self.campaign.folder, self.runs, self.folder / "dist", preparation=preparation, quiet=True)


def make_world(folder: Path, **more: object) -> World:
    settings: dict[str, object] = {"profiles": PROFILES, "tokens": 24, **more}
    world = World(folder, write_campaign(folder / "campaign", **settings))  # type: ignore[arg-type]
    world.runs.mkdir()
    return world
