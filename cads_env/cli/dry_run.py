"""`cads run --dry-run`: messages, requests, tokens and time of a run, without asking anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from cads_env.cli.job import Job
from cads_env.cli.terminal import OUT
from cads_env.errors import RunError
from cads_env.report.wording import counted, visible
from cads_env.run.preview import Preview, Request, preview
from cads_env.run.settings import Setting, protocol_of


def show_plan(job: Job, *, tokens_per_second: float | None = None) -> None:
    """Print what a run would ask.

    Every campaign is taken to be like that of the first seed.

    Args:
        job: The run.
        tokens_per_second: Tokens that the server writes a second, all requests together; None when
            nobody knows.

    Raises:
        RunError: The speed is no positive number.
    """
    if tokens_per_second is not None and not tokens_per_second > 0:
        msg = f"--tokens-per-second is {tokens_per_second:g}; expected a number above 0."
        raise RunError(msg)
    previews = {setting: _previews(job, setting) for setting in job.settings}
    _say(
        f"{counted(job.total, 'campaign')}: {counted(len(job.specs), 'arm')}, "
        f"{counted(len(job.settings), 'setting')}, {counted(len(job.seeds), 'seed')}. "
        "Nothing is asked and nothing is written."
    )
    for arm in previews[job.settings[0]]:
        _show_messages(arm)
    _say("Estimates", style="bold")
    for setting, arms in previews.items():
        for arm in arms:
            if arm.requests:
                name = arm.arm if len(previews) == 1 else f"{setting.name}: {arm.arm}"
                _say(f"{visible(name)}: {_estimate(arm, len(job.seeds))}")
    asking = [arm for arms in previews.values() for arm in arms if arm.requests]
    _show_sums(asking, len(job.seeds), tokens_per_second)


def _previews(job: Job, setting: Setting) -> list[Preview]:
    seed = job.seeds[0]
    return preview(
        job.specs,
        pair=job.panel.for_seed(seed),
        seed=seed,
        protocol=protocol_of(setting, job.protocol),
        identifiers=setting.identifiers,  # type: ignore[arg-type]
    )


def _show_messages(arm: Preview) -> None:
    _say(f"Arm {visible(arm.arm)}", style="bold")
    if arm.requests is None:
        _say("asks nothing that it could show ahead.")
    elif not arm.requests:
        _say("asks nothing.")
    else:
        # The last one has the longest lists.
        for request in dict.fromkeys((arm.requests[0], arm.requests[-1])):
            _show_request(request)


def _show_request(request: Request) -> None:
    _say(
        f"Round {request.round}: about {request.tokens_in:,} tokens in, at most "
        f"{request.tokens_out_most:,} out"
    )
    for role, content in request.messages:
        _say(f"[{role}]")
        for line in content.split("\n"):
            _say(visible(line, len(line) + 1))


def _estimate(arm: Preview, campaigns: int) -> str:
    least = len(arm.requests or ()) * campaigns
    return (
        f"{least:,} requests at least, {least * arm.attempts:,} at most; about "
        f"{arm.tokens_in * campaigns / max(least, 1):,.0f} tokens in a request, "
        f"{arm.tokens_in * campaigns:,} to {arm.tokens_in * campaigns * arm.attempts:,} in all; "
        f"at most {arm.tokens_out_most * campaigns * arm.attempts:,} tokens out."
    )


_LONG_S: Final = 1e9
"""Nobody waits longer, and a clock cannot show all that a slow enough server would take."""


def _show_sums(asking: Sequence[Preview], campaigns: int, tokens_per_second: float | None) -> None:
    if not asking:
        _say("No arm asks anything of the world outside.")
        return
    least = sum(len(arm.requests or ()) for arm in asking) * campaigns
    most = sum(len(arm.requests or ()) * arm.attempts for arm in asking) * campaigns
    tokens_in = sum(arm.tokens_in for arm in asking) * campaigns
    most_in = sum(arm.tokens_in * arm.attempts for arm in asking) * campaigns
    out = sum(arm.tokens_out_most for arm in asking) * campaigns
    most_out = sum(arm.tokens_out_most * arm.attempts for arm in asking) * campaigns
    _say(
        f"In all: {least:,} requests at least, {most:,} at most; about {tokens_in:,} to "
        f"{most_in:,} tokens in; at most {out:,} tokens out with one request a round, "
        f"{most_out:,} with all attempts."
    )
    if tokens_per_second is not None:
        _say(
            f"At {tokens_per_second:g} tokens written a second: at most "
            f"{_time(out / tokens_per_second)} with one request a round, "
            f"{_time(most_out / tokens_per_second)} with all attempts; reading prompts comes on "
            "top."
        )


def _time(seconds: float) -> str:
    if seconds > _LONG_S:
        return "years"
    return str(timedelta(seconds=round(seconds)))


def _say(text: str, **style: Any) -> None:
    OUT.print(text, markup=False, highlight=False, soft_wrap=True, **style)
