"""The report of a run, put together from its parts. Reads nothing but the result and its folder."""

from __future__ import annotations

from cads_env.report.answers import CARDS_SHOWN, cards, key_of, summary_table, warnings_of
from cads_env.report.badge import badge_line
from cads_env.report.campaigns import campaigns_section, registries_section
from cads_env.report.chain import chain_section, overlap_section
from cads_env.report.content import Block, Paragraph, Report, Section, Table, Terms, capped
from cads_env.report.glossary import TERMS
from cads_env.report.ladder import ladder_section
from cads_env.report.llm.first import first_table
from cads_env.report.llm.section import model_sections
from cads_env.report.methods import methods_paragraph
from cads_env.report.provenance import provenance_section
from cads_env.report.rounds import budget_section, rounds_section
from cads_env.report.verdict import scored_scope, verdicts
from cads_env.report.wording import counted, plain, visible
from cads_env.run.result import RunResult, bound_words

FAILURES_LISTED = 50


def build_report(result: RunResult, *, natural: RunResult | None = None) -> Report:
    """Everything that the report of a run says.

    Args:
        result: From `evaluate` or `load_run`; one without campaigns is legal.
        natural: The same arms without a quota; see `write_report`.
    """
    answers = verdicts(result)
    several = len(result.arms) > 1
    c = result.certificate
    lead = (
        f"{counted(len(result.arms), 'arm')} and {'their twins' if several else 'its twin'}, "
        f"{counted(len(result.campaigns), 'campaign')} scored, {scored_scope(result)}; "
        f"{visible(result.protocol.name, 160)} on {visible(result.panel, 160)}, "
        f"q = {plain(c.q)}, {bound_words(c)}. {badge_line(result.protocol)}"
    )
    warnings = warnings_of(result)
    if len(answers) > CARDS_SHOWN:
        more = f"Cards show the first {CARDS_SHOWN} of {len(answers):,} arms; the table has all."
        warnings = (*warnings, more)
    return Report(
        title="Did the proposer add anything?",
        lead=lead,
        warnings=warnings,
        cards=cards(result, answers),
        key=key_of(result),
        summary=summary_table(answers),
        beside=first_table(result),
        sections=_sections(result, natural),
    )


def _sections(result: RunResult, natural: RunResult | None) -> tuple[Section, ...]:
    found = [chain_section(result)]
    if len(result.campaigns):
        found += [
            campaigns_section(result),
            rounds_section(result),
            overlap_section(result),
            ladder_section(result),
            budget_section(result),
        ]
    found += [*model_sections(result, natural=natural), registries_section(result)]
    if result.failures:
        found.append(_failures_section(result))
    found += [
        Section(key="definitions", title="Definitions", blocks=(Terms(TERMS),)),
        Section(
            key="methods",
            title="Methods, to paste",
            blocks=(Paragraph(methods_paragraph(result)),),
        ),
        provenance_section(result),
    ]
    return tuple(found)


def _failures_section(result: RunResult) -> Section:
    rows = [
        (visible(f.arm), visible(f.registry), str(f.seed), visible(f.reason, 300))
        for f in result.failures[: FAILURES_LISTED + 1]
    ]
    shown, _ = capped(rows, FAILURES_LISTED, "failures.jsonl")
    note = ""
    if len(result.failures) > FAILURES_LISTED:
        total = f"{len(result.failures):,}"
        note = f"The first {FAILURES_LISTED} of {total}; all are in failures.jsonl."
    table = Table(
        caption="Failed campaigns",
        columns=("arm", "registry", "seed", "reason"),
        rows=shown,
        words=(1, 3),
        note=note,
    )
    blocks: tuple[Block, ...] = (
        Paragraph(
            "A campaign fails when the proposer's infrastructure broke. It is left out of its arm "
            "and never averaged in; an empty answer is not a failure."
        ),
        table,
    )
    return Section(key="failures", title="Failed campaigns", blocks=blocks)
