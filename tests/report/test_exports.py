import csv
import resource

import pytest

from evidence.errors import EvidenceError
from evidence.report import tables
from evidence.report.exports import export, package_tables
from evidence.report.tables import Table


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_table_sample_and_offer_leaves_with_its_own_numbers(view, tmp_path):
    written = export(package_tables(view), tmp_path / "csv")
    assert sorted(path.name for path in written) == sorted(
        [*(f"{name}.csv" for name in tables.TABLES), "samples.csv", "offers.csv"]
    )
    assert sorted(path.name for path in (tmp_path / "csv").iterdir()) == sorted(path.name for path in written)
    samples = read(tmp_path / "csv/samples.csv")
    entry = view.comparisons[0]
    expected = view.one(f"{entry['folder']}/samples.json")["samples"]
    mine = [row for row in samples if row["comparison"] == entry["id"]]
    assert [row["ttftSeconds"] for row in mine] == [
        "" if one["ttftSeconds"] is None else str(one["ttftSeconds"]) for one in expected
    ]
    offers = view.one(f"{view.incomplete[0]['folder']}/offers.json")["offers"]
    assert [(row["offer"], row["fate"]) for row in read(tmp_path / "csv/offers.csv")] == [
        (one["offer"], one["fate"]) for one in offers
    ]


def test_an_export_again_replaces_the_files(view, tmp_path):
    first = {path: path.read_bytes() for path in export(package_tables(view), tmp_path)}
    assert {path: path.read_bytes() for path in export(package_tables(view), tmp_path)} == first


def test_a_file_that_is_not_its_own_is_left_alone_and_so_are_the_others(view, tmp_path):
    export(package_tables(view), tmp_path)
    (tmp_path / "offers.csv").write_text("mine\n")
    (tmp_path / "samples.csv").write_text((tmp_path / "samples.csv").read_text().splitlines()[0] + "\nold\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(EvidenceError, match=r"offers\.csv: found a file that was not made by this command"):
        export(package_tables(view), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_in_the_way_is_refused(view, tmp_path):
    (tmp_path / "there").write_text("x")
    with pytest.raises(EvidenceError, match="expected a folder"):
        export(package_tables(view), tmp_path / "there")


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "--context-tokens 1 -> 2", "\uff1d1+1"]
)
def test_a_text_that_a_spreadsheet_would_run_stays_text(text):
    row = next(csv.reader(tables.render_csv(Table("t", ("c",), [[text]])).splitlines()[1:]))
    assert row == [f"'{text}"]


@pytest.mark.parametrize("value", [-1.5, 3, "-17.33 %", "+5.00", "plain", "a -> b"])
def test_numbers_and_plain_text_stay_as_they_are(value):
    assert tables.render_csv(Table("t", ("c",), [[value]])).splitlines()[1] == str(value)


@pytest.mark.parametrize("folder", ["new/deep", "there"])
def test_where_there_is_no_room_everything_stays_as_it_was(view, tmp_path, folder):
    content = package_tables(view)
    (tmp_path / "there").mkdir()
    before = {one.name: one.read_bytes() for one in export(content, tmp_path / "there")}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(EvidenceError, match="cannot be written: File too large"):
            export(content, tmp_path / folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [one.name for one in tmp_path.iterdir()] == ["there"]
    assert {one.name: one.read_bytes() for one in (tmp_path / "there").iterdir()} == before


def test_controls_are_shown_and_small_numbers_stand_in_full():
    lines = tables.render_csv(Table("t", ("c",), [["a\x1b\x00\u202e"], [2.9e-05]])).splitlines()
    assert lines[1:] == ["a\\u001b\\u0000\\u202e", "0.000029"]
