"""A report in a real browser: nothing fetched, nothing cut, every text legible in both themes."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cads_env import RunResult
from cads_env.report.grid import write_grid_report
from cads_env.report.studies import reproduce_into
from cads_env.report.write import write_report
from cads_env.studies import load_config, load_study
from cads_env.studies.play import StudyRows
from tests.report.llm_cases import play_grid

pytestmark = pytest.mark.browser
webdriver = pytest.importorskip("selenium.webdriver", reason="needs the extra browser")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
THEMES = ("light", "dark")
WIDTHS = (360, 1280)

CONTRASTS = """
const channel = c => { c /= 255; return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; };
const rgba = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
const ground = node => {
  for (let at = node; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const found = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].filter(n => n.nodeType === 3 && n.data.trim());
  if (!own.length || ['TITLE', 'DESC'].includes(node.tagName.toUpperCase())) continue;
  const style = getComputedStyle(node);
  const drawn = node.namespaceURI.endsWith('svg');
  const ink = light(rgba(drawn ? style.fill : style.color));
  const paper = light(ground(drawn ? node.ownerSVGElement.parentElement : node));
  const ratio = (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
  found.push([ratio, own[0].data.trim().slice(0, 40)]);
}
return found;
"""
CUT = """
const width = document.documentElement.clientWidth;
const inside = node => node.closest('.scroll, pre');
return [...document.querySelectorAll('body *')].filter(node => {
  const box = node.getBoundingClientRect();
  return box.width && !inside(node) && !node.closest('.skip, .unseen')
    && (box.right > width + 1 || box.left < -1);
}).map(node => `${node.tagName} ${node.className.baseVal ?? node.className} ${node.textContent}`);
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()


@pytest.fixture(scope="module")
def addresses(
    run: RunResult, hostile: RunResult, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Pages by name: two of runs, two of studies (curves, and words on the axis), one of a grid."""
    places = {
        name: write_report(result, tmp_path_factory.mktemp("report"))[0]
        for name, result in (("plain", run), ("hostile", hostile))
    }
    for study, items in (
        ("primary", ("table1", "figure-3a")),
        ("cross", ("table-s2", "figure-s1")),
    ):
        plan = StudyRows.plan(load_study(study), load_config(study), items, seeds=3)
        folder = reproduce_into(tmp_path_factory.mktemp("studies"), plan).folder
        assert folder is not None
        places[study] = folder / "REPORT.html"
    grid = play_grid(
        tmp_path_factory.mktemp("grids") / "grid", feedback=("full", "none", "proposer=permuted")
    )
    places["grid"] = write_grid_report(grid)[0]
    return {name: path.as_uri() for name, path in places.items()}


@pytest.fixture(params=["plain", "hostile"])
def address(request: pytest.FixtureRequest, addresses: dict[str, str]) -> str:
    return addresses[request.param]


@pytest.fixture(params=["plain", "hostile", "primary", "cross", "grid"])
def page(request: pytest.FixtureRequest, addresses: dict[str, str]) -> str:
    return addresses[request.param]


def show(driver: Any, address: str, *, theme: str = "light", width: int = 1280) -> None:
    """Open a page in a theme and width, with every fold of it open."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(address)
    driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


def test_the_page_asks_for_nothing_and_complains_of_nothing(driver: Any, page: str) -> None:
    # What the browser's own first page asked for is not ours.
    driver.get("about:blank")
    driver.get_log("performance")
    driver.get_log("browser")
    show(driver, page)
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert asked == {page}
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_page(driver: Any, page: str, width: int) -> None:
    show(driver, page, width=width)
    size = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    whole, shown = driver.execute_script(size)
    assert whole <= shown
    assert driver.execute_script(CUT) == []


@pytest.mark.parametrize("theme", THEMES)
def test_every_text_stands_out_from_its_ground(driver: Any, page: str, theme: str) -> None:
    show(driver, page, theme=theme)
    found = driver.execute_script(CONTRASTS)
    assert len(found) > 150
    assert [entry for entry in found if entry[0] < 4.5] == []


def test_the_themes_differ(driver: Any, page: str) -> None:
    grounds = set()
    for theme in THEMES:
        show(driver, page, theme=theme)
        look = "return getComputedStyle(document.body).backgroundColor"
        grounds.add(driver.execute_script(look))
    assert len(grounds) == 2


def test_every_picture_is_named_for_those_who_do_not_see_it(driver: Any, address: str) -> None:
    show(driver, address)
    pictures = driver.find_elements("css selector", "svg:not([aria-hidden])")
    assert len(pictures) > 10
    assert all(picture.accessible_name for picture in pictures)
    assert {picture.aria_role for picture in pictures} <= {"img", "image"}


def test_the_first_screen_answers_for_every_arm(driver: Any, address: str) -> None:
    show(driver, address)
    answers = driver.find_elements("css selector", ".card .word, .card .net")
    assert len(answers) >= 4
    assert all(answer.rect["y"] + answer.rect["height"] < 800 for answer in answers)


def test_the_first_screen_of_a_grid_holds_its_arms(driver: Any, addresses: dict[str, str]) -> None:
    show(driver, addresses["grid"])
    rows = driver.find_elements("css selector", "#answers tbody tr")
    assert len(rows) == 5
    assert all(row.rect["y"] + row.rect["height"] < 800 for row in rows)
    (table,) = driver.find_elements("css selector", "#answers .scroll")
    look = "return [arguments[0].scrollWidth, arguments[0].clientWidth]"
    whole, shown = driver.execute_script(look, table)
    assert whole <= shown


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_checker_of_accessibility_finds_nothing(
    driver: Any, page: str, width: int, theme: str
) -> None:
    found = (importlib.util.find_spec(n) for n in ("axe_playwright_python", "axe_core_python"))
    places = [Path(s.origin).parent / "axe.min.js" for s in found if s and s.origin]
    if not places:
        pytest.skip("needs axe-core")
    show(driver, page, theme=theme, width=width)
    driver.execute_script(places[0].read_text(encoding="utf-8"))
    driver.set_script_timeout(120)
    violations = driver.execute_async_script(
        "const done = arguments[0]; axe.run().then(r => done(r.violations.map("
        "v => [v.id, v.nodes.map(n => n.html + n.failureSummary).slice(0, 3)])))"
    )
    assert violations == []
