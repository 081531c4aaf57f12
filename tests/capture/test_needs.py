"""A campaign that needs what its engine cannot give is refused before anything is started."""

import sys
from pathlib import Path

import pytest

from evidence.campaign import read_campaign
from evidence.capture.needs import describe_adapters, refuse_campaign
from evidence.capture.session import capture
from evidence.errors import EvidenceError

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_folder import CAMPAIGN, MAIN, write_campaign


def with_adapter(folder: Path, adapter: str, **main: object) -> Path:
    text = CAMPAIGN.replace('adapter = "synthetic"', f'adapter = "{adapter}"')
    return write_campaign(folder, text.replace('snapshot = "synthetic"', 'snapshot = "process-rss"'), {**MAIN, **main})


@pytest.mark.parametrize(
    ("adapter", "need", "main"),
    [
        ("transformers-serve", "logprobs", {"logprobs": True}),
        ("transformers-serve", "seed", {"seed": 7, "temperature": 1}),
        ("llama.cpp", "min-tokens", {"min_tokens": 4}),
        ("sie", "chat", {}),
    ],
)
def test_the_runner_refuses(tmp_path: Path, adapter: str, need: str, main: dict[str, object]) -> None:
    path = with_adapter(tmp_path / "campaign", adapter, **main)
    with pytest.raises(EvidenceError, match=f"campaign.toml: tiny-memory: engine adapter {adapter} cannot give {need}"):
        capture(path, "tiny-memory", tmp_path / "runs", quiet=True)
    assert not (tmp_path / "runs").exists()


def test_a_sequence_cap_needs_one(tmp_path: Path) -> None:
    path = with_adapter(tmp_path, "transformers-serve")
    path.write_text(path.read_text().replace('kind = "memory"', 'kind = "sequence-cap"'))
    with pytest.raises(EvidenceError, match="sequence-cap"):
        refuse_campaign(read_campaign(path), "tiny-memory")


def test_a_comparison_needs_a_snapshot(tmp_path: Path) -> None:
    """A package has no word for one that was not taken: without it no hour of requests could be built."""
    path = write_campaign(tmp_path / "campaign", CAMPAIGN.replace('snapshot = "synthetic"', 'snapshot = "none"'))
    with pytest.raises(EvidenceError, match="tiny-memory: engine synthetic takes no snapshot"):
        capture(path, "tiny-memory", tmp_path / "runs", quiet=True)
    assert not (tmp_path / "runs").exists()
    refuse_campaign(read_campaign(path), "tiny-rr")


def test_what_an_engine_gives_is_not_refused(tmp_path: Path) -> None:
    refuse_campaign(read_campaign(with_adapter(tmp_path / "a", "synthetic", seed=7)), "tiny-memory")
    refuse_campaign(read_campaign(with_adapter(tmp_path / "b", "vllm", logprobs=True, ignore_eos=True)), "tiny-native")


def test_the_page_holds_the_table_as_it_is() -> None:
    assert describe_adapters() in (Path(__file__).parents[2] / "docs/engines.md").read_text()
