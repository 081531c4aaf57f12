"""The page in headless Chromium: it opens in silence, filters, keeps to itself, and shows the numbers of `evidence show`."""

import json

import pytest

from evidence.report import tables
from evidence.report.illustrations import Illustrations
from evidence.report.page import render
from evidence.report.plots import Plots
from tests.report.test_page import GOOD, POISON, poisoned
from tests.report.test_plots import DRAW

ROWS = """[...document.querySelectorAll('[data-table="NAME"]')].flatMap(table => [...(table.tBodies ?? [])].flatMap(body =>
  [...body.rows].map(row => [...(table.dataset.key ? [table.dataset.key] : []), ...[...row.cells].map(cell => cell.textContent)])))"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_opens_without_errors_or_requests(browser, report, dark):
    browser.open(report, dark=dark)
    assert browser.said == []
    assert [url for url in browser.asked if url not in (report.as_uri(), "data:,")] == []
    colour = browser.value("getComputedStyle(document.body).backgroundColor")
    assert colour == ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(browser, report, dark):
    """WCAG 2.2 asks for a contrast of 4.5 for text; every element with text of its own is measured."""
    browser.open(report, dark=dark)
    low = browser.value("""(() => {
      const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
        .reduce((sum, c, at) => sum + c * [.2126, .7152, .0722][at], 0);
      const behind = node => { for (; node; node = node.parentElement) {
        const c = numbers(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
      return [...document.querySelectorAll('body *')].filter(n => [...n.childNodes].some(c => c.nodeType === 3 && c.data.trim())
          && n.checkVisibility() && !['SCRIPT', 'title'].includes(n.tagName))
        .map(n => { const style = getComputedStyle(n), a = light(numbers(n.tagName === 'text' ? style.fill : style.color)),
          b = light(behind(n)); return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), n.outerHTML.slice(0, 120)]; })
        .filter(([ratio, html]) => ratio < 4.5 && !html.includes('var(--paper)') && !/^<text class="p\\d+"[^>]*>\\d+<\\/text>$/.test(html)).slice(0, 5);
    })()""")
    assert low == []


def test_the_numbers_are_those_of_show(browser, report, package):
    browser.open(report)
    said = json.loads(tables.show(tables.read_package(package), "json"))
    for name in tables.TABLES:
        columns = tables.TABLES[name](tables.read_package(package)).columns
        expected = [[tables.cell(row[column]) for column in columns] for row in said[name]]
        assert expected or name.startswith("lifecycle"), name  # this package has no record
        assert sorted(browser.value(ROWS.replace("NAME", name))) == sorted(expected), name


def test_every_sample_is_in_a_table_and_every_main_sample_is_a_mark(browser, report, package):
    browser.open(report)
    view = tables.read_package(package)
    for entry in view.comparisons:
        samples = view.one(f"{entry['folder']}/samples.json")["samples"]
        found = browser.value(ROWS.replace("NAME", "samples"))
        mine = {row[1]: row for row in found if row[0] == entry["id"]}
        assert {one["offer"]: tables.cell(one["ttftSeconds"]) for one in samples} == {
            offer: row[6] for offer, row in mine.items()
        }
        titles = browser.value(
            f"[...document.querySelectorAll('#comparison-{entry['id']} use title')].map(one => one.textContent)"
        )
        assert sorted(titles) == sorted(one["offer"] for one in samples)


@pytest.mark.parametrize("name", ["profile", "engine", "outcome"])
def test_filters_show_what_they_name(browser, report, package, name):
    browser.open(report)
    rows = tables.read_package(package).matrix
    for value in sorted({row[name] for row in rows}):
        browser.value(f"""(() => {{ const one = document.querySelector('select[data-filter="{name}"]');
            one.value = {json.dumps(value)}; one.dispatchEvent(new Event('change')); }})()""")
        expected = sum(row[name] == value for row in rows)
        seen = "[...document.querySelectorAll('#matrix .case')].filter(one => one.checkVisibility()).map(one => one.dataset)"
        shown = browser.value(f"({seen}).map(one => one.{name})")
        assert shown == [value] * expected
        assert browser.value("document.getElementById('shown').textContent") == f"{expected} of {len(rows)} cases shown"
        flat = """[...document.querySelectorAll('table[data-table="matrix"] tbody tr')].filter(row => !row.hidden).length"""
        assert browser.value(flat) == expected
    browser.value(f"""(() => {{ const one = document.querySelector('select[data-filter="{name}"]');
        one.value = ''; one.dispatchEvent(new Event('change')); }})()""")
    assert browser.value("document.getElementById('shown').textContent") == f"{len(rows)} of {len(rows)} cases shown"


def test_tables_leave_as_csv_and_markdown(browser, report, package):
    browser.open(report)
    browser.value("""(() => { window.kept = []; URL.createObjectURL = blob => { window.kept.push(blob); return 'data:,'; };
        HTMLAnchorElement.prototype.click = function () {}; })()""")
    browser.value("""document.querySelector('table[data-table="decisions"]').parentElement.nextSibling
        .querySelectorAll('button').forEach(one => one.click())""")
    comma, bars = browser.value("Promise.all(window.kept.map(one => one.text()))")
    assert (
        comma.splitlines()[0]
        == "comparison,kind,decision,qualified,failed gates,disqualifications,requalification,synthetic"
    )
    assert bars.splitlines()[1] == "| --- | --- | --- | --- | --- | --- | --- | --- |"
    assert len(comma.splitlines()) == len(tables.read_package(package).comparisons) + 1


def test_it_is_walked_by_keyboard_and_heard(browser, report):
    browser.open(report)
    assert browser.value("document.documentElement.lang") == "en"
    assert browser.value(
        "[...document.querySelectorAll('svg.plot')].every(one => one.getAttribute('aria-label').length > 20)"
    )
    assert browser.value(
        "[...document.querySelectorAll('table')].every(one => one.caption && one.querySelector('th[scope]'))"
    )
    assert browser.value(
        "[...document.querySelectorAll('.scroll')].every(one => one.tabIndex === 0 && one.getAttribute('aria-label'))"
    )
    assert browser.value("document.querySelectorAll('h1').length") == 1
    assert browser.value("[...document.querySelectorAll('select')].every(one => one.labels.length === 1)")
    ids = browser.value("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    assert browser.value(
        "[...document.querySelectorAll('a[href^=\"#\"]')].every(one => document.getElementById(one.hash.slice(1)))"
    )
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.value("document.activeElement.className") == "skip"


def test_the_verdict_stays_in_sight(browser, report):
    browser.open(report)
    browser.value("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.value("document.querySelector('.banner').getBoundingClientRect().top") == 0


def test_hostile_data_runs_nothing_and_asks_for_nothing(browser, view, tmp_path):
    view.files = {name: poisoned(content) for name, content in view.files.items()}
    page = tmp_path / "hostile.html"
    page.write_text(render(GOOD, view), encoding="utf-8")
    browser.open(page)
    assert browser.said == []
    assert [url for url in browser.asked if url not in (page.as_uri(), "data:,")] == []
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert browser.value("document.querySelectorAll('main img, main style').length") == 0
    assert POISON[:20] in browser.value("document.querySelector('h1').textContent")


def test_it_prints(browser, report):
    browser.open(report)
    printed = browser.call("Page.printToPDF", printBackground=True)["data"]
    assert len(printed) > 50_000


def test_a_narrow_screen_scrolls_tables_and_not_the_page(browser, report):
    browser.open(report)
    browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    wide = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    browser.call("Emulation.clearDeviceMetricsOverride")
    assert wide <= 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_drawings_of_a_markdown_page_are_legible_by_themselves(browser, tmp_path, dark):
    """Opened alone, as an image of a web view is: its own ground, text with a contrast of 4.5, and nothing asked for."""
    drawings = Illustrations("page")
    for draw in DRAW.values():
        draw(Plots(drawings))
    assert len(drawings.files) == len(DRAW)
    for name, content in drawings.files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
        browser.open(tmp_path / name, dark=dark)
        assert browser.said == []
        assert [url for url in browser.asked if url != (tmp_path / name).as_uri()] == []
        ground, low = browser.value("""(() => {
          const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(c => c / 255)
            .map(c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4).reduce((sum, c, at) => sum + c * [.2126, .7152, .0722][at], 0);
          const fill = node => getComputedStyle(node).fill, ground = fill(document.querySelector('.ground'));
          const ratio = node => { const [a, b] = [light(fill(node)), light(ground)]; return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); };
          return [ground, [...document.querySelectorAll('text')].filter(node => ratio(node) < 4.5).map(node => node.textContent)];
        })()""")
        assert ground == ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)")
        assert low == [], name
