"""A forged package that verifies, with a page made of it; each made once a test process."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evidence.report.tables import PackageView, read_package
from evidence.report.writing import write_report
from tests.report.browser import CHROMIUM, Browser
from tests.verifiers.forged_package import lay, sealed

RECORD = Path(__file__).parents[1] / "vectors/lifecycle/published-record.json"


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay(sealed(), tmp_path_factory.mktemp("package") / "forged")


@pytest.fixture(scope="session")
def report(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("report") / "report.html"
    validation = write_report(package, output, quiet=True)
    assert validation.exit_code == 0, validation.render("text")
    return output


@pytest.fixture
def view(package: Path) -> PackageView:
    """The package as read, with a lifecycle record beside it; a test may alter it."""
    found = read_package(package)
    entry = {"id": "record", "path": "results/lifecycle/record.json", "sha256": "0" * 64, "experiments": []}
    found.files["results/lifecycle-index.json"]["records"] = [entry]
    found.files[entry["path"]] = json.loads(RECORD.read_bytes())
    return found


@pytest.fixture
def lean(view: PackageView) -> PackageView:
    """One comparison and no lifecycle record: what most questions need, drawn in half the time."""
    index = view.files["results/settings-index.json"]
    index["comparisons"] = [entry for entry in index["comparisons"] if entry["id"] == "memory-half"]
    view.files["results/lifecycle-index.json"]["records"] = []
    return view


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here; Debian's package is called chromium")
    one = Browser()
    yield one
    one.close()
