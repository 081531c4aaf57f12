"""A campaign is read whole or refused with one error that names place, found and expected."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from evidence.campaign import expanded, read_campaign, request_path
from evidence.errors import EvidenceError
from tests.campaign_folder import CAMPAIGN, MAIN, write_campaign


def refusal(folder: Path, text: str = CAMPAIGN, main: dict[str, object] | None = None) -> EvidenceError:
    with pytest.raises(EvidenceError) as caught:
        read_campaign(write_campaign(folder, text, main))
    assert caught.value.code == 2
    return caught.value


def test_a_campaign_is_read_with_its_hash(tmp_path: Path) -> None:
    path = write_campaign(tmp_path)
    campaign = read_campaign(path)
    assert campaign.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert list(campaign.cases) == ["tiny-native", "tiny-rr"]
    comparison = campaign.comparisons["tiny-memory"]
    assert comparison.body == (tmp_path / "requests/main.json").read_bytes()
    assert json.loads(comparison.native_body)["stream"] is False
    assert comparison.devices == ("0", "1")
    assert read_campaign(tmp_path) == campaign


def test_a_definition_is_bound_by_its_hash(tmp_path: Path) -> None:
    definition = read_campaign(write_campaign(tmp_path)).profiles["tiny"].definition
    assert definition.sha256 == hashlib.sha256(definition.read()).hexdigest()
    assert definition.name == "source-definitions/tiny.toml"


def test_names_to_capture_are_told_apart(tmp_path: Path) -> None:
    campaign = read_campaign(write_campaign(tmp_path))
    assert campaign.kind("tiny-memory") == "comparison"
    assert campaign.kind("tiny-rr") == "attempt"
    with pytest.raises(EvidenceError) as caught:
        campaign.kind("tiny-memry")
    assert "tiny-memory" in caught.value.hint


def replaced(old: str, new: str, count: int = 1) -> str:
    assert old in CAMPAIGN
    return CAMPAIGN.replace(old, new, count)


WRONG = {
    "an unknown key": (replaced('version = "1"', 'versoin = "1"'), "[[engine]] 'synthetic', version", "found nothing", "versoin"),
    "an unknown top key": (CAMPAIGN.replace("[campaign]", "[gatewy]\n[campaign]"), "gatewy", "unknown key", "gateway"),
    "an extra key": (replaced('version = "1"', 'version = "1"\nargument = []'), "argument", "an unknown key", "arguments"),
    "a wrong type": (replaced("schema_version = 1", 'schema_version = "1"'), "schema_version", "'1' (str)", ""),
    "true is no number": (replaced("schema_version = 1", "schema_version = true"), "schema_version", "true", ""),
    "another form": (replaced("schema_version = 1", "schema_version = 2"), "schema_version", "found 2", ""),
    "a bad number": (replaced('surface = "native"', 'surface = "native"\nrequests = 0'), "requests", "found 0", ""),
    "not a number": (replaced('snapshot = "synthetic"', 'snapshot = "none"\nready_timeout_seconds = nan'), "ready_timeout_seconds", "nan", ""),
    "infinity": (replaced('snapshot = "synthetic"', 'snapshot = "none"\nready_timeout_seconds = inf'), "ready_timeout_seconds", "inf", ""),
    "a negative time": (replaced('snapshot = "synthetic"', "ready_timeout_seconds = -1"), "ready_timeout_seconds", "-1", ""),
    "an unknown adapter": (replaced('adapter = "synthetic"', 'adapter = "vlm"'), "adapter", "'vlm'", "vllm"),
    "an unknown engine": (replaced('engine = "synthetic"', 'engine = "synthtic"'), "engine", "'synthtic'", "synthetic"),
    "an unknown profile": (replaced('profile = "tiny"', 'profile = "tny"'), "profile", "'tny'", "tiny"),
    "an unknown case": (replaced('case = "tiny-rr"', 'case = "tiny-r"'), "case", "'tiny-r'", "tiny-rr"),
    "a missing file": (replaced("requests/main.json", "requests/mian.json"), "body", "no file requests/mian.json", ""),
    "a path outside": (replaced("source-definitions/tiny.toml", "../tiny.toml"), "definition", "'../tiny.toml'", ""),
    "an absolute path": (replaced("source-definitions/tiny.toml", "/etc/passwd"), "definition", "'/etc/passwd'", ""),
    "a branch as revision": (replaced("0123456789abcdef0123456789abcdef01234567", "main"), "revision", "'main'", "commit"),
    "a duplicate id": (replaced('id = "tiny-rr"', 'id = "tiny-native"'), "[[case]] 'tiny-native', id", "a second time", ""),
    "one name for two": (replaced('id = "tiny-memory"', 'id = "tiny-rr"'), "tiny-rr", "which a case has too", ""),
    "a surface without a case": (replaced('["native", "rr"]', '["native", "rr", "exact"]'), "[[case]]", "'exact'", "outcomes"),
    "a case on another surface": (replaced('["native", "rr"]', '["native"]'), "surface", "'rr'", ""),
    "an empty limitation": (replaced('title = "', 'limitations = ["One.", " "]\ntitle = "'), "[campaign], limitations[1]", "' '", ""),
    "rr with one worker": (replaced('"two-worker"', '"single"'), "topology", "'single'", ""),
    "an id in capitals": (replaced('name = "small"', 'name = "Small"'), "[campaign], name", "'Small'", ""),
    "equal arms": (replaced('candidate = "600"', 'candidate = "1000"'), "candidate", "'1000'", ""),
    "a number as setting": (replaced('candidate = "600"', "candidate = 600"), "candidate", "600 (int)", ""),
    "an argument set twice": (replaced("arguments = []", 'arguments = ["--memory-mib", "5", "--memory-mib=6"]'), "argument", "set 2 times", ""),
    "made-up memory": (replaced('adapter = "synthetic"', 'adapter = "vllm"'), "snapshot", "'synthetic'", ""),
    "a short hash": (replaced('b7852b855"', 'b7852b8"'), "sha256", "found 'e3b0", "sha256sum"),
    "no TOML": ("schema_version = = 1", "campaign.toml", "no valid TOML", "line 1 reads: 'schema_version = = 1'"),
    "TOML that ends too soon": (CAMPAIGN + '\nnames = ["a",', "campaign.toml", "no valid TOML", "not closed"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(tmp_path: Path, name: str) -> None:
    text, place, found, hint = WRONG[name]
    error = refusal(tmp_path, text)
    assert error.message.startswith(str(tmp_path / "campaign.toml"))
    assert place in error.message
    assert found in error.message
    assert hint in error.hint or hint in error.message


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"stream": False}, "does not stream"),
        ({"temperature": None}, "without temperature"),
        ({"max_tokens": None}, "without max_tokens"),
        ({"messages": None}, ""),
    ],
)
def test_a_comparison_fixes_its_request(tmp_path: Path, change: dict[str, object], found: str) -> None:
    main = {key: value for key, value in (MAIN | change).items() if value is not None}
    error = refusal(tmp_path, CAMPAIGN, main)
    assert "[[comparison]] 'tiny-memory', body" in error.message
    assert found in error.message


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "campaign"
    write_campaign(folder)
    (tmp_path / "outside.toml").write_text("x = 1\n")
    (folder / "source-definitions/tiny.toml").unlink()
    (folder / "source-definitions/tiny.toml").symlink_to(tmp_path / "outside.toml")
    with pytest.raises(EvidenceError, match="leads out of the campaign folder"):
        read_campaign(folder)


def test_a_missing_campaign_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="cannot be read") as caught:
        read_campaign(tmp_path / "nowhere.toml")
    assert "init" in caught.value.hint


def test_an_index_must_have_the_declared_hash(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/tiny.source-index").write_text("{}")
    wrong = f'license = "Apache-2.0"\nsource_index = "weights/tiny.source-index"\nsource_index_sha256 = "{"0" * 64}"'
    error = refusal(tmp_path, replaced('license = "Apache-2.0"', wrong))
    assert "source_index_sha256" in error.message
    assert hashlib.sha256(b"{}").hexdigest() in error.message


def test_an_environment_variable_is_read_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINY_MODEL", raising=False)
    campaign = read_campaign(
        write_campaign(tmp_path, replaced('version = "1"', 'version = "1"\nmodel = "{env:TINY_MODEL}/m"'))
    )
    profile, engine = campaign.profiles["tiny"], campaign.engines["synthetic"]
    assert campaign.model_of(profile, engine) is None
    monkeypatch.setenv("TINY_MODEL", "/models")
    assert campaign.model_of(profile, engine) == "/models/m"
    assert expanded("plain {port}") == "plain {port}"


def test_a_probe_gives_the_request_and_the_tokens(tmp_path: Path) -> None:
    (tmp_path / "probe.json").write_text(
        '{"request": {"messages": [{"role": "user", "content": "a"}]}, "expectedTokenIds": [1, 2]}'
    )
    text = replaced('surface = "native"', 'surface = "native"\nprobe = "probe.json"')
    case = read_campaign(write_campaign(tmp_path, text)).cases["tiny-native"]
    assert case.probe is not None
    assert case.probe.expected_token_ids == (1, 2)
    assert case.body == b'{"messages": [{"content": "a", "role": "user"}]}'
    (tmp_path / "probe.json").write_text(
        '{"request": {"messages": [{"role": "user", "content": "a"}]}, "expectedTokenIds": [1, true]}'
    )
    assert "probe.json without expectedTokenIds" in refusal(tmp_path, text).message
    (tmp_path / "probe.json").write_text('{"request": {"messages": [{"role": "user", "content": "a"}]}, "request": 1}')
    assert "a duplicate key" in refusal(tmp_path, text).message


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"messages": [{"role": "user", "content": "a"}]}', "/v1/chat/completions"),
        (b'{"prompt": ""}', "/v1/completions"),
        (b'{"input": ""}', "/v1/embeddings"),
    ],
)
def test_a_body_tells_its_path(body: bytes, path: str) -> None:
    assert request_path(body) == path


def test_a_comparison_of_running_engines_is_refused_with_a_way_out(tmp_path: Path) -> None:
    text = CAMPAIGN.replace(
        'adapter = "synthetic"', 'adapter = "command"\nurls = ["http://127.0.0.1:1", "http://127.0.0.1:2"]'
    )
    error = refusal(tmp_path, text.replace('snapshot = "synthetic"', 'snapshot = "none"'))
    assert "whose engine is named by urls" in error.message
    assert "take the comparison out" in error.hint


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("request_timeout_seconds = 1" + "0" * 400, "request_timeout_seconds: found 1000"),
        ("body = {messages = [{role = \"user\"}], seed = nan}", "body: found a value that JSON cannot hold (Out of range"),
        ("body = {messages = [{role = \"user\"}], at = 2026-01-01}", "body: found a value that JSON cannot hold (Object of type date"),
        ("body = {messages = \"hello\"}", "body: found body with messages 'hello', expected a list of messages"),
        ("probe = \"" + "n" * 300 + "\"", "probe: found 'nnn"),
        ("arguments = [\"x\"]\n\"a\\nb\" = 1", "a\\nb: found an unknown key"),
    ],
)  # fmt: skip
def test_no_value_of_a_key_ends_in_a_traceback(tmp_path: Path, added: str, said: str) -> None:
    message = refusal(tmp_path, CAMPAIGN.replace('id = "tiny-native"\n', f'id = "tiny-native"\n{added}\n')).message
    assert message.startswith(f"{tmp_path}/campaign.toml, [[case]] 'tiny-native', {said}")
    assert len(message) < 400
    assert message.isprintable()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("arguments = []", 'arguments = []\nenvironment = {"A=B" = "x"}', "environment: found the name 'A=B'"),
        ("arguments = []", 'arguments = []\nprogram = [" "]', "program[0]: found ' ', expected the name of a program"),
        ("--memory-mib", "ENV:A=B", "argument: found 'ENV:A=B', expected ENV: and the name"),
        ("A small campaign", "a \\u202e title", "title: found 'a \\u202e title'"),
        ("A small campaign", "\\u200b", "title: found '\\u200b'"),
        ("[[profile]]", "[gateway]\nname = 'g'\ncommand = ['g', '{x}']\nurl = 'http://h:1'\n[[profile]]", "command[1]: found the placeholder {x}"),
        ("[[profile]]", "[gateway]\nname = 'g'\nurl = 'http://h:{listen_port}'\n[[profile]]", "expected a port, because it runs already"),
        ("[[profile]]", "[gateway]\nname = 'g'\nurl = 'http://h:65536'\n[[profile]]", "expected an address of the form"),
        ("[[profile]]", "[gateway]\nname = 'g'\nurl = 'http://a..b:1'\n[[profile]]", "expected an address of the form"),
    ],
)  # fmt: skip
def test_what_no_process_could_be_given_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in refusal(tmp_path, CAMPAIGN.replace(old, new)).message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x = " + "[" * 3000 + "]" * 3000, "found lists or tables nested beyond reading, expected TOML"),
        ("x = 1" + "0" * 5000, "found no valid TOML: exceeds the limit"),
        ("\ufeffschema_version = 1", "found no valid TOML"),
    ],
)
def test_what_is_no_campaign_at_all_is_said_in_a_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "campaign.toml").write_text(content, encoding="utf-8")
    with pytest.raises(EvidenceError) as caught:
        read_campaign(tmp_path)
    assert caught.value.message.startswith(f"{tmp_path}/campaign.toml: {said}")
    assert caught.value.hint


@pytest.mark.parametrize(
    "values", [{"max_tokens": 1.5}, {"max_tokens": 0}, {"temperature": -1}, {"stream_options": "x"}, {"stop": "\ud800"}]
)
def test_a_main_request_is_one_whose_package_could_be_written(tmp_path: Path, values: dict[str, object]) -> None:
    assert "[[comparison]] 'tiny-memory', body: found " in refusal(tmp_path, main={**MAIN, **values}).message
