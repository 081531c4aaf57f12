"""The page without a browser: what it says of the verification, that data never becomes markup, how it is written."""

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evidence.report.comparisons import memory, section
from evidence.report.drawing import Drawings
from evidence.report.page import render
from evidence.report.plots import Plots
from evidence.report.tables import read_package
from evidence.report.writing import write_report
from evidence.verdict import Finding, Stage, Validation

GOOD = Validation("p.tgz", [Stage("members", 3, 3), Stage("verify-results.py", 1, 1)])
POISON = '"></td><script>alert(1)</script><img src=x onerror=alert(2)><style>*{}</style>\u202e'


class Parsed(HTMLParser):
    """Elements with attributes, and the text of the page."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def poisoned(value, key=""):
    """The value with markup after every string but those by which files and rows are found."""
    kept = {"folder", "arm", "phase", "gate", "relative", "path", "kind"}
    if isinstance(value, dict):
        return {name: poisoned(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one, key) for one in value]
    return value + POISON if isinstance(value, str) and key not in kept else value


def test_a_verified_page_says_so_and_names_the_checks(report):
    page = report.read_text(encoding="utf-8")
    assert "\u2714 VERIFIED" in page
    assert "not verified" not in page.lower().replace("not verified::", "").split("<main")[1].split('content: "NOT')[0]
    for check in ("members", "checksums", "schemas", "trusted", "inputs", "verify-results.py", "verify-converged.py"):
        assert check in page
    assert "cannot be shown" not in page


def test_every_part_is_there(view):
    page = render(GOOD, view)
    assert "cannot be shown" not in page
    for anchor in (
        "overview",
        "checks",
        "matrix-section",
        "comparisons",
        "incomplete",
        "attempts",
        "lifecycle",
        "provenance",
        "limits",
    ):
        assert f'id="{anchor}"' in page
    for words in (
        "What this does not prove",
        "That the run took place",
        "h100_single_process_crash",
        "Synthetic figure",
        "paired",
    ):
        assert words in page
    assert page.count("<svg") >= 2 * 7 + 1 + 4


@pytest.fixture(scope="module")
def hostile(package):
    """A page of a package and a validation that have markup in every string."""
    view = read_package(package)
    view.files = {name: poisoned(content) for name, content in view.files.items()}
    stages = [Stage(POISON, 1, 0, [Finding(POISON, POISON, POISON, POISON)], POISON)]
    return render(Validation(POISON, stages, {POISON: POISON}, [{"verdict": POISON}]), view)


def test_no_data_becomes_markup(hostile):
    page = hostile
    parsed = Parsed(page)
    tags = [tag for tag, _ in parsed.elements]
    assert (tags.count("script"), tags.count("style"), tags.count("img")) == (1, 1, 0)
    assert not [
        name for _, attributes in parsed.elements for name in attributes if name.startswith("on") or name == "style"
    ]
    assert page.count("\u202e") == 0
    assert parsed.text.count("onerror=alert(2)") > 500
    assert "cannot be shown" not in page


@pytest.mark.parametrize("damage", [None, {}, "text"])
def test_a_file_out_of_form_costs_its_own_part_and_no_other(lean, damage):
    lean.files["results/settings/memory-half/samples.json"] = damage
    page = render(GOOD, lean)
    assert "cannot be shown" in page
    assert 'id="comparison-memory-half"' not in page
    assert 'data-table="attempts"' in page
    assert "That the run took place" in page


def test_an_unverified_package_is_marked_everywhere_and_its_codes_are_named(package, tmp_path):
    copy = tmp_path / "altered"
    shutil.copytree(package, copy)
    target = next(copy.glob("results/settings/*/samples.json"))
    target.write_text(target.read_text().replace('"totalSeconds": 0.', '"totalSeconds": 1.', 1))
    output = tmp_path / "report.html"
    validation = write_report(copy, output, quiet=True)
    assert validation.exit_code == 1
    page = output.read_text(encoding="utf-8")
    banner = page.split('class="banner bad"')[1].split("</div>")[0]
    assert "NOT VERIFIED" in banner
    assert validation.findings[0].code in banner
    assert "verify-results.py" in banner.split("Not run")[1]
    assert page.count('class="badge bad">not verified') == page.count("<h2")
    assert '<body class="unverified">' in page
    assert "<title>NOT VERIFIED" in page


def test_a_package_that_cannot_be_read_still_gets_a_page_that_says_so(package, tmp_path):
    (tmp_path / "folder" / "results").mkdir(parents=True)
    (tmp_path / "folder" / "manifest.json").write_text("{}\n")
    output = tmp_path / "report.html"
    assert write_report(tmp_path / "folder", output, quiet=True).exit_code == 1
    page = output.read_text(encoding="utf-8")
    assert "could not be read" in page
    assert "folder-empty" in page
    assert "That the run took place" in page


@pytest.mark.parametrize(("code", "words"), [(2, "could not run"), (3, "blind")])
def test_a_verifier_that_could_not_run_or_is_blind_verifies_nothing(code, words):
    page = render(Validation("p", [Stage("members", 1, 1), Stage("verify-results.py", 1, 0, status=code)]), None)
    assert f"NOT VERIFIED, a {'check' if code == 2 else 'verifier'} {'is ' if code == 3 else ''}{words}" in page


def test_mutation_controls_that_ran_are_counted():
    ran = Validation("p", [Stage("members", 1, 1)], {}, [{"verdict": "killed"}, {"verdict": "killed"}])
    assert "2 of 2 forged copies were rejected with the expected code.</p>" in render(ran, None)
    ran.mutations.append({"verdict": "inert"})
    assert "2 of 2 forged copies were rejected with the expected code. 1 more found nothing" in render(ran, None)
    ran.mutations.append({"verdict": "survived"})
    assert "2 of 3 forged copies were rejected" in render(ran, None)
    assert "were not part of this run" in render(GOOD, None)


def test_only_nvml_is_called_a_gpu(lean):
    name = "results/settings/memory-half/snapshots.json"
    for source, there, words in (
        ("nvml", True, "read with NVML"),
        ("process-rss", False, "no GPU"),
        ("synthetic", False, "no memory of anything"),
    ):
        for one in lean.files[name]["snapshots"]:
            one["source"] = source
        drawn = memory(lean, Plots(Drawings()), lean.comparisons[0])
        assert words in drawn
        assert ("GPU memory" in drawn) is there


def test_memory_that_was_not_read_is_unknown_with_its_reason_and_never_zero(lean):
    name = "results/settings/memory-half/snapshots.json"
    device = lean.files[name]["snapshots"][0]["devices"][0]
    device["usedBytes"], device["reason"] = None, "the driver did not answer"
    drawn = memory(lean, Plots(Drawings()), lean.comparisons[0])
    assert "the driver did not answer" in drawn
    assert ">unknown</text>" in drawn


def test_a_failed_sample_is_drawn_and_counted(lean):
    name = "results/settings/memory-half/samples.json"
    one = lean.files[name]["samples"][100]
    one["classification"], one["ttftSeconds"] = "CLIENT_TIMEOUT", None
    page = section(lean, Plots(Drawings()), lean.comparisons[0])
    assert f"<title>{one['offer']} CLIENT_TIMEOUT</title>" in page
    assert "252 samples, 1 of them not a normal answer" in page


def test_the_policy_names_the_digests_of_what_is_there_and_nothing_else(report):
    page = report.read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1].replace("&#x27;", "'")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy
    assert not re.search(r'(?:src|href|action)="(?!#|data:,)', page)


def test_twenty_seven_comparisons_fit_in_three_megabytes(lean, report):
    one = len(section(lean, Plots(Drawings()), lean.comparisons[0]).encode())
    assert report.stat().st_size + 25 * one < 2_700_000


def test_the_page_holds_no_path_of_the_machine(report, package):
    page = report.read_text(encoding="utf-8")
    assert str(Path(package).parent) not in page


def test_a_label_that_xml_cannot_hold_is_shown_in_the_drawing(recwarn):
    drawn = Plots(Drawings()).residency(["first"], {"a\x1b[31m\x00\u202e" + "W" * 300: [True]}, "label")
    assert "a\\u001b[31m\\u0000\\u202eWW" in drawn
    assert not recwarn.list


@pytest.mark.parametrize("manifest", [[], "x", 7])
def test_a_manifest_that_is_no_object_still_gets_a_page(lean, manifest):
    lean.files["manifest.json"] = manifest
    assert "<h1>An evidence package</h1>" in render(Validation("p", [Stage("s", 1, 0)]), lean)
