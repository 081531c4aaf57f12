"""A campaign to begin with, and what is missing before GPU time is spent."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from evidence import starting
from evidence.campaign import read_campaign
from evidence.errors import EvidenceError
from tests.campaign_folder import CAMPAIGN, MAIN, write_campaign


def test_the_template_has_one_profile_of_each_state(tmp_path: Path) -> None:
    starting.init(tmp_path / "new")
    campaign = read_campaign(tmp_path / "new")
    assert sorted(profile.state for profile in campaign.profiles.values()) == ["accessible", "deferred", "gated"]
    assert (tmp_path / "new/README.md").is_file()
    assert campaign.names() == [
        "my-memory",
        "my-model-native",
        "my-model-rr",
        "my-gated-model-native",
        "my-gated-model-rr",
    ]


def test_the_template_lacks_only_what_it_cannot_know(tmp_path: Path) -> None:
    starting.init(tmp_path / "new")
    (line,) = starting.check(tmp_path / "new")
    assert line.startswith("my-gated-model-native, my-gated-model-rr: ")
    assert "MY_GATED_MODEL" in line


@pytest.mark.parametrize(("folder", "name"), [("new", "new"), ("v1.2-a", "v1.2-a"), ("My Runs", "my-evaluation")])
def test_a_campaign_has_the_name_of_its_folder_where_that_is_an_id(tmp_path: Path, folder: str, name: str) -> None:
    starting.init(tmp_path / folder)
    assert read_campaign(tmp_path / folder).name == name
    assert f"{name}-evaluation.tgz" in (tmp_path / folder / "campaign.toml").read_text()


def test_the_template_lies_in_the_package() -> None:
    assert starting.TEMPLATE.is_relative_to(Path(starting.__file__).parent)


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(EvidenceError, match="found something there"):
        starting.init(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_nothing_is_missing_of_a_whole_campaign(tmp_path: Path) -> None:
    text = CAMPAIGN.replace("--memory-mib", "--context-tokens")
    assert starting.check(write_campaign(tmp_path, text)) == []


ENGINE = 'adapter = "synthetic"\nversion = "1"\nsnapshot = "synthetic"\narguments = []'
MISSING = {
    "a program": ('adapter = "vllm"\nversion = "1"\nmodel = "."\nprogram = ["no-such-vllm"]', "program no-such-vllm is not there"),
    "a model": ('adapter = "command"\nversion = "1"\nmodel = "./no-such-model"\nprogram = ["true"]', "no-such-model is not there"),
    "an unnamed model": ('adapter = "vllm"\nversion = "1"', "no model is named"),
    "a variable": ('adapter = "vllm"\nversion = "1"\nmodel = "{env:NO_SUCH_VARIABLE}/m"', "names a variable that is not set"),
    "a placeholder": (ENGINE.replace("[]", '["{prot}"]'), "unknown placeholder {prot}"),
    "a snapshot": (ENGINE.replace('"synthetic"\narguments', '"none"\narguments'), "takes no snapshot"),
    "a device": (ENGINE.replace('adapter = "synthetic"', 'adapter = "command"\nprogram = ["true"]').replace('snapshot = "synthetic"', 'snapshot = "nvml"').replace("arguments = []", ""), "device 0: NVML"),
    "an ability": ('adapter = "sie"\nversion = "1"\nprogram = ["true"]', "adapter sie cannot give chat"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_said(tmp_path: Path, name: str) -> None:
    engine, said = MISSING[name]
    assert ENGINE in CAMPAIGN
    path = write_campaign(tmp_path, CAMPAIGN.replace("--memory-mib", "--context-tokens").replace(ENGINE, engine))
    assert any(said in line for line in starting.check(path)), starting.check(path)


def test_a_running_engine_must_listen(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        text = CAMPAIGN.replace('snapshot = "synthetic"', f'urls = ["{url}", "{url}"]')
        text = text[: text.index("[[comparison]]")]
        assert starting.check(write_campaign(tmp_path, text)) == [
            f"tiny-native, tiny-rr: engine synthetic: nothing listens at {url} (Connection refused)"
        ]
        closed.listen()
        assert starting.check(tmp_path) == []


def test_a_gateway_must_be_installed(tmp_path: Path) -> None:
    gateway = (
        '[gateway]\nname = "nginx"\ncommand = ["no-such-nginx"]\nurl = "http://127.0.0.1:{listen_port}"\n\n[[case]]'
    )
    text = CAMPAIGN.replace("--memory-mib", "--context-tokens").replace("[[case]]", gateway, 1)
    assert starting.check(write_campaign(tmp_path, text)) == [
        "gateway: gateway nginx: program no-such-nginx is not there"
    ]


def test_a_comparison_needs_the_tokens_counted(tmp_path: Path) -> None:
    main = {key: value for key, value in MAIN.items() if key != "stream_options"}
    path = write_campaign(tmp_path, CAMPAIGN.replace("--memory-mib", "--context-tokens"), main)
    assert ["include_usage" in line for line in starting.check(path)] == [True]


def test_a_date_sensitive_profile_needs_a_date(tmp_path: Path) -> None:
    text = CAMPAIGN.replace("--memory-mib", "--context-tokens").replace(
        'state = "accessible"', 'state = "accessible"\ndate_sensitive = true'
    )
    (line,) = starting.check(write_campaign(tmp_path, text))
    assert "tiny-memory" in line
    assert "comparison_date" in line


def test_an_unreadable_campaign_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no valid TOML"):
        starting.check(write_campaign(tmp_path, "schema_version = = 1"))
