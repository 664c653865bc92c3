"""The HTML and Markdown forms of a report: whole, escaped, readable without a picture."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from pathlib import Path

import pytest

from cads_env import RunResult
from cads_env.report import campaigns
from cads_env.report.assemble import build_report
from cads_env.report.content import Figure, Report, Table
from cads_env.report.html import html_page, style_sheet
from cads_env.report.markdown import escape, escape_block, markdown
from cads_env.report.wording import visible
from tests.report.conftest import HOSTILE, Dead, Half, Page, play


@pytest.fixture(scope="module")
def report(run: RunResult) -> Report:
    return build_report(run)


@pytest.fixture(scope="module")
def page(report: Report) -> Page:
    return Page(html_page(report, title="A report"))


def tables(report: Report) -> list[Table]:
    blocks = [block for section in report.sections for block in section.blocks]
    found = [block.data if isinstance(block, Figure) else block for block in blocks]
    return [table for table in found if isinstance(table, Table) and table.rows]


def test_headings_do_not_skip_a_level_and_there_is_one_title(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    steps = itertools.pairwise(levels)
    assert all(after <= before + 1 for before, after in steps)


def test_the_page_has_landmarks_and_a_language(page: Page) -> None:
    tags = [tag for tag, _ in page.elements]
    for landmark in ("header", "main", "nav", "footer"):
        assert tags.count(landmark) == 1
    assert dict(page.elements)["html"]["lang"] == "en"


def test_names_are_unique_and_every_reference_is_met(page: Page) -> None:
    names = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(names)) == len(names)
    wanted = {
        name
        for _, attributes in page.elements
        for name in (attributes.get("aria-labelledby") or "").split()
    }
    links = {str(a["href"]).removeprefix("#") for tag, a in page.elements if tag == "a"}
    assert wanted | links <= set(names)


def test_every_picture_has_a_name_a_description_and_a_table(report: Report, page: Page) -> None:
    pictures = [a for tag, a in page.elements if tag == "svg" and "aria-hidden" not in a]
    assert len(pictures) > 10
    assert all(a["role"] == "img" and a["aria-labelledby"] for a in pictures)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("desc") == len(pictures)
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, Figure):
                assert block.data.rows
                assert all(d.title and d.description for d in block.drawings)


def test_every_cell_of_a_head_has_a_scope(page: Page) -> None:
    heads = [a for tag, a in page.elements if tag == "th"]
    assert heads
    assert all(a["scope"] in ("row", "col") for a in heads)


def test_nothing_is_fetched_and_nothing_runs(report: Report, page: Page) -> None:
    text = html_page(report, title="A report")
    tags = {tag for tag, _ in page.elements}
    assert tags.isdisjoint({"script", "img", "link", "iframe", "object", "form", "base"})
    assert not re.search(r"https?://|@import|src=|\sstyle=|\son\w+=", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#hatch", "#speckle"}
    digest = base64.b64encode(hashlib.sha256(style_sheet().encode()).digest()).decode()
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


def test_the_page_holds_every_table_of_the_report(report: Report, page: Page) -> None:
    for table in tables(report):
        expected = [list(table.columns), *map(list, table.rows)]
        found = [t for c, t in zip(page.captions, page.tables, strict=True) if c == table.caption]
        assert [[c.replace("\u00a0", " ") for c in row] for row in expected] in [
            [[c.replace("\u00a0", " ") for c in row] for row in t] for t in found
        ]


def test_markdown_holds_every_table_of_the_report(report: Report) -> None:
    text = markdown(report)
    for table in tables(report):
        for row in (table.columns, *table.rows):
            assert f"| {' | '.join(map(escape, row))} |" in text


def test_markdown_tables_have_as_many_cells_in_every_row(hostile: RunResult) -> None:
    lines = markdown(build_report(hostile)).splitlines()
    widths: list[int] = []
    for line in lines:
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1 if line.startswith("|") else 0
        assert not (cells and widths and widths[-1]) or cells == widths[-1], line
        widths.append(cells)
    assert max(widths) > 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", r"a\|b"),
        ("<b>&amp;", r"\<b>\&amp;"),
        ("`x` *y* _z_ ~w~ $v$", r"\`x\` \*y\* \_z\_ \~w\~ \$v\$"),
        ("[a](b) [c][d] [e]: [^f] [!NOTE]", r"[a\](b) [c\][d] [e\]: \[^f] \[!NOTE]"),
        ("[-1.74, 0.44], p < 0.001, a & b", "[-1.74, 0.44], p < 0.001, a & b"),
        ("epsilon_bar, a__b, _c_d_", r"epsilon_bar, a\_\_b, \_c_d\_"),
        (r"\x1b \| \\", r"\x1b \\\| \\\\"),
        ("http://x :smile: 1:2 a: b", r"http\://x \:smile: 1:2 a: b"),
        (r"a\*b", r"a\\\*b"),
        ("two\n\nlines", "two lines"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_a_line_cannot_start_a_heading_a_list_or_a_rule() -> None:
    shown = [
        escape_block(text)
        for text in ("# a", "- b", "1. c", "=== d", "1.25 e", "+8 f", "> g", "[ ] h")
    ]
    assert shown == [
        "\\# a", "\\- b", "1\\. c", "\\=== d", "1.25 e", "\\+8 f", "\\> g", "\\[ ] h",
    ]  # fmt: skip


def test_hostile_names_stay_text(hostile: RunResult) -> None:
    report = build_report(hostile)
    text = html_page(report, title=visible(HOSTILE))
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.elements}
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    written = text + markdown(report)
    assert not any(c in written for c in "\x1b\u202e")
    # The name of 10,000 characters is cut wherever it stands.
    assert "x" * 200 not in written
    assert re.search(r">x{80}\.\.\. \([\d,]+ characters\)<", written)
    assert len(text) < 400_000
    outside = re.sub(r"^```sh\n.*?\n```$", "", markdown(report), flags=re.S | re.M)
    assert "<script" not in outside.replace("\\<", "")


@pytest.mark.parametrize("seeds", [[0], [3], range(2)])
def test_one_or_two_campaigns_make_a_report(tmp_path: Path, seeds: list[int]) -> None:
    report = build_report(play({"prior": "prior"}, tmp_path / "run", seeds=seeds))
    Page(html_page(report, title="small"))
    assert "Net by campaign" in markdown(report)


def test_a_run_in_which_every_campaign_failed_makes_a_report(tmp_path: Path) -> None:
    report = build_report(play({"dead": Dead, "half": Half}, tmp_path / "run", seeds=[0, 1]))
    page = Page(html_page(report, title="failed"))
    assert report.cards[0].answer == "unknown"
    assert page.table("Failed campaigns")[1][:3] == ["dead", "tiny-0", "0"]
    alone = build_report(play({"dead": Dead}, tmp_path / "alone", seeds=[0]))
    assert [s.key for s in alone.sections] == [
        "chain", "registries", "failures", "definitions", "methods", "provenance",
    ]  # fmt: skip
    Page(html_page(alone, title="failed"))
    assert "No campaign was scored" in markdown(alone)


def test_without_stored_reads_the_ladder_is_of_the_declared_and_says_so(
    tmp_path: Path,
) -> None:
    result = play({"prior": "prior"}, tmp_path / "run", seeds=[0, 1, 2])
    whole = next(s for s in build_report(result).sections if s.key == "ladder")
    (tmp_path / "run" / "reads.jsonl").unlink()
    part = next(s for s in build_report(result).sections if s.key == "ladder")
    assert len(part.blocks) == len(whole.blocks) + 1
    assert "--keep-reads" in str(part.blocks[1])
    (full, declared) = (s.blocks[-1] for s in (whole, part))
    assert isinstance(full, Figure)
    assert isinstance(declared, Figure)
    kept = [row for row in full.data.rows if row[-1] == "yes"]
    assert kept == list(declared.data.rows)


def test_a_long_run_is_drawn_in_part_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "CAMPAIGNS_LISTED", 20)
    arms = {f"arm-{i}": "prior" for i in range(14)}
    result = play(arms, tmp_path / "run", seeds=[0, 1])
    report = build_report(result)
    assert len(report.cards) == 12
    assert "first 12 of 14 arms" in " ".join(report.warnings)
    assert report.summary is not None
    assert len(report.summary.rows) == 14
    text = html_page(report, title="long")
    assert "The first 20 of 28 campaigns; all are in campaigns.jsonl." in text
    assert len(text) < 1_000_000
