"""`cads audit`: what an audit of blinded controls would buy, before a read is spent on it."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.table import Table

from cads_env.certificate import AuditCap
from cads_env.certificate.audit_plan import TIMINGS, AuditPlan, PlannedTiming, plan_audit
from cads_env.cli.terminal import OUT
from cads_env.errors import CertificateError, suggest
from cads_env.report.terminal import facts

audit_app = typer.Typer(
    help="Audits of the contamination by blinded controls.", no_args_is_help=True
)

_TOGETHER: Final = 100
_TITLES: Final = {"interleaved": "over the rounds", "front": "before round 0"}


@audit_app.callback()
def about() -> None:
    """Audits of the contamination by blinded controls."""


@audit_app.command("plan")
def audit_plan(
    controls: Annotated[int, typer.Option(help="Number of one-read controls.")] = 200,
    tau: Annotated[float, typer.Option(help="A control above this is flagged.")] = 1.0,
    delta_class: Annotated[
        float, typer.Option("--Delta", help="Smallest displacement of the declared corruptions.")
    ] = 2.0,
    delta: Annotated[
        float, typer.Option("--delta", help="Chance that the bound fails; e-BH pays it out of q.")
    ] = 0.01,
    rho: Annotated[
        float, typer.Option(help="Excess of the test reads' contamination over the controls'.")
    ] = 0.0,
    alpha_lo: Annotated[
        float, typer.Option(help="Flag rate that clean controls are known to have at least.")
    ] = 0.0,
    looks: Annotated[
        str, typer.Option(help="Running minimum at each batch or per_read.")
    ] = "batch",
    timing: Annotated[str, typer.Option(help="interleaved, front, or both side by side.")] = "both",
    epsilon: Annotated[float, typer.Option(help="Contamination supposed to be there.")] = 0.10,
    blind: Annotated[float, typer.Option(help="Bound to declare without an audit.")] = 0.30,
    rounds: Annotated[int, typer.Option(help="Rounds of the campaign.")] = 16,
    q: Annotated[float, typer.Option(help="Target false discovery rate.")] = 0.10,
    m: Annotated[int, typer.Option(help="Candidates of the registry.")] = 6000,
    k: Annotated[
        int | None,
        typer.Option(help="Declarations that share a bar, beside a lone one; default: 100."),
    ] = None,
    low: Annotated[float, typer.Option(help="Smallest displacement supposed.")] = 2.0,
    high: Annotated[float, typer.Option(help="Largest displacement supposed.")] = 4.0,
    theta: Annotated[float, typer.Option(help="Working alternative.")] = 0.7,
    s: Annotated[float, typer.Option(help="Standard deviation of a clean read.")] = 0.5,
) -> None:
    """Say what an audit of this size would buy: bounds, caps, and reads to a declaration."""
    if timing not in (*TIMINGS, "both"):
        msg = f"Unknown timing {timing!r}. {suggest(timing, (*TIMINGS, 'both'))}"
        raise CertificateError(msg)
    checked: Any = looks
    audit = AuditCap(
        tau=tau, Delta=delta_class, delta=delta, rho=rho, alpha_lo=alpha_lo, looks=checked
    )
    sharers = max(1, min(_TOGETHER, m)) if k is None else k
    plan = plan_audit(
        audit,
        controls=controls,
        epsilon=epsilon,
        rounds=rounds,
        theta=theta,
        s=s,
        q=q,
        m=m,
        declarations=(1,) if sharers == 1 else (1, sharers),
        blind=blind,
        displacement=(low, high),
        timings=tuple(name for name in TIMINGS if timing in (name, "both")),
    )
    _show(plan, controls, epsilon, f"U({low:g}, {high:g})")


def _show(plan: AuditPlan, controls: int, epsilon: float, displacement: str) -> None:
    OUT.print(
        facts(
            [
                ("detection", f"kappa {plan.kappa:.4f}, at least, of the declared class"),
                ("", f"{plan.sensitivity:.4f} of corruptions that add {displacement}"),
                ("false alarms", f"{plan.false_alarm:.4f}"),
                ("flag rate", f"{plan.flag_rate:.4f} at a contamination of {epsilon:g}"),
                ("level", f"e-BH at q - delta = {plan.level:g}"),
            ]
        )
    )
    OUT.print(_rounds_table(plan))
    OUT.print(_caps_table(plan))
    for line in _words(plan, controls, epsilon):
        OUT.print(line, markup=False, highlight=False)


def _rounds_table(plan: AuditPlan) -> Table:
    """Mean bound and cap of each round, the timings side by side."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title="mean bound and cap in force")
    table.add_column("round", justify="right")
    for planned in plan.timings:
        for word in ("bound", "cap"):
            table.add_column(f"{word}, {planned.timing}", justify="right")
    for round in range(len(plan.timings[0].cap)):
        cells = [str(round)]
        for planned in plan.timings:
            cells += [f"{planned.epsilon_hat[round]:.3f}", f"{planned.cap[round]:.3f}"]
        table.add_row(*cells)
    return table


def _caps_table(plan: AuditPlan) -> Table:
    """Final bounds, caps and reads to a declaration, beside the known and the declared bound."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title="reads at the full cap, one a round")
    table.add_column("cap")
    table.add_column("final bound", justify="right")
    table.add_column("90 % range", justify="right")
    for k in plan.declarations:
        table.add_column("alone" if k == 1 else f"{k:,} together", justify="right")
    rounds = len(plan.timings[0].cap)
    for planned in plan.timings:
        spread = f"{planned.final_low:.3f}-{planned.final_high:.3f}"
        final = f"{planned.final_mean:.3f}"
        name = f"audited, {_TITLES[planned.timing]}"
        table.add_row(name, final, spread, *(_reads(x, rounds) for x in planned.reads))
    for name, fixed in (("oracle (known)", plan.oracle), ("blind (declared)", plan.blind)):
        bound = f"{fixed.epsilon_bar:.3f}"
        table.add_row(name, bound, "", *(_reads(x, rounds) for x in fixed.reads))
    return table


def _reads(count: float, rounds: int) -> str:
    if count == math.inf:
        return "never"
    return f"{count:.0f}*" if count > rounds else f"{count:.0f}"


def _words(plan: AuditPlan, controls: int, epsilon: float) -> list[str]:
    """What the figures mean, in sentences."""
    rounds = len(plan.timings[0].cap)
    lines = [
        f"Means over {plan.paths:,} simulated audits; * takes more than the {rounds} rounds. The "
        f"oracle and the blind cap spend no delta; the controls come on top of the test reads."
    ]
    return lines + [_meaning(planned, plan, controls, epsilon) for planned in plan.timings]


def _meaning(planned: PlannedTiming, plan: AuditPlan, controls: int, epsilon: float) -> str:
    blind = plan.blind
    saved = blind.reads[0] - planned.reads[0]
    if planned.reads[0] == math.inf:
        worth = "no number of reads, unlike" if blind.reads[0] < math.inf else "no number, as"
    elif blind.reads[0] == math.inf:
        worth = f"{planned.reads[0]:.0f} reads, and is out of reach"
    elif saved == 0.0:
        worth = "as many reads as"
    else:
        word = "fewer" if saved > 0 else "more"
        worth = f"{abs(saved):.0f} read{'s' if abs(saved) != 1 else ''} {word} than"
    text = (
        f"{controls:,} controls {_TITLES[planned.timing]} bound a contamination of {epsilon:g} by "
        f"{planned.final_mean:.3f} in the end (blind: {blind.epsilon_bar:g}), and a lone "
        f"declaration takes {worth} under the blind cap."
    )
    if planned.covered < 1.0 - plan.delta:
        text += (
            f" WARNING: the bound covers the contamination in {planned.covered:.1%} of the audits "
            f"only: such corruptions are flagged more rarely than kappa says. Lower Delta or tau."
        )
    return text
