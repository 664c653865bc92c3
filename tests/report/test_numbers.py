"""Every number of a report against its recomputation from the frames."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cads_env import RunResult
from cads_env.report.assemble import build_report
from cads_env.report.content import Figure, Table
from cads_env.report.wording import interval, number, p_cell, signed
from cads_env.run.load import read_records


@pytest.fixture(scope="module")
def tables(run: RunResult) -> dict[str, Table]:
    found = {}
    for section in build_report(run).sections:
        for block in section.blocks:
            table = block.data if isinstance(block, Figure) else block
            if isinstance(table, Table):
                name = f"{section.key}: {table.caption}"
                assert name not in found
                found[name] = table
    return found


def column(table: Table, name: str) -> list[str]:
    at = table.columns.index(name)
    return [row[at] for row in table.rows]


def arm_rows(run: RunResult, arm: str) -> pd.DataFrame:
    return run.campaigns[run.campaigns["arm"] == arm]


ARMS = ("random", "prior", "half")


def test_the_chain_holds_the_means_of_the_campaigns(
    run: RunResult, tables: dict[str, Table]
) -> None:
    table = tables["chain: Means a campaign"]
    sources = {
        "hits read": "tested_hits",
        "certified hits": "true",
        "certified nulls": "false",
        "twin": "twin_true",
    }
    for shown, source in sources.items():
        means = [number(arm_rows(run, arm)[source].mean()) for arm in ARMS]
        assert column(table, shown)[:3] == means
    assert column(table, "n")[:3] == [str(len(arm_rows(run, arm))) for arm in ARMS]
    for i, arm in enumerate(ARMS):
        rows = arm_rows(run, arm)
        bad, n = int((rows["false"] > 0).sum()), len(rows)
        bound = 1.0 if bad == n else stats.beta.ppf(0.95, bad + 1, n - bad)
        assert column(table, "P(any null) ≤")[i] == number(bound, 3)


def test_the_net_is_the_t_interval_over_the_means_of_registries(
    run: RunResult, tables: dict[str, Table]
) -> None:
    table = tables["chain: Means a campaign"]
    p_values = []
    for i, arm in enumerate(ARMS):
        means = arm_rows(run, arm).groupby("registry")["net"].mean().to_numpy()
        mean, error = means.mean(), stats.sem(means)
        low, high = stats.t.interval(0.95, len(means) - 1, mean, error)
        assert column(table, "net")[i] == signed(mean)
        assert column(table, "95 % interval")[i] == interval(low, high)
        p_values.append(stats.ttest_1samp(means, 0).pvalue)
        reference = arm_rows(run, arm)["reference_true"].mean()
        spread = reference - arm_rows(run, arm)["twin_true"].mean()
        assert column(table, "norm. net")[i] == number(mean / spread if spread >= 1 else None)
    assert column(table, "p")[:3] == [p_cell(p) for p in p_values]
    order = np.argsort(p_values)
    adjusted = np.maximum.accumulate(np.array([3, 2, 1]) * np.array(p_values)[order]).clip(max=1)
    expected = [p_cell(adjusted[list(order).index(i)]) for i in range(3)]
    assert column(table, "p (Holm)")[:3] == expected


def test_the_reference_covers_failed_campaigns_too(
    run: RunResult, tables: dict[str, Table]
) -> None:
    table = tables["chain: Means a campaign"]
    every = arm_rows(run, "random")  # It never fails, so it has all of them.
    expected = number(every["reference_true"].mean())
    assert table.rows[-1][table.columns.index("certified hits")] == expected


def test_quartiles_and_wins_are_those_of_the_nets(run: RunResult, tables: dict[str, Table]) -> None:
    table = tables["campaigns: Net of the campaigns of each arm"]
    for row, arm in zip(table.rows, ARMS, strict=True):
        nets = arm_rows(run, arm)["net"]
        quartiles = np.percentile(nets, [0, 25, 50, 75, 100])
        expected = [
            arm, str(len(nets)), signed(nets.mean()), number(nets.std()),
            *(signed(q, 1) for q in quartiles), str((nets > 0).sum()), str((nets < 0).sum()),
        ]  # fmt: skip
        assert list(row) == expected


def test_every_campaign_is_listed_as_it_is(run: RunResult, tables: dict[str, Table]) -> None:
    table = tables["campaigns: Campaigns"]
    columns = ["true", "false", "twin_true", "net", "gained", "lost", "tested_hits"]
    for row, (_, campaign) in zip(table.rows, run.campaigns.iterrows(), strict=True):
        assert row[:3] == (campaign["arm"], campaign["registry"], str(campaign["seed"]))
        shown = [int(cell.replace("−", "-").replace("+", "")) for cell in row[3:]]
        assert shown == campaign[columns].tolist()


def test_registries_have_their_own_intervals(run: RunResult, tables: dict[str, Table]) -> None:
    table = tables["campaigns: Net by arm and registry"]
    expected = []
    for arm in ARMS:
        for name, part in arm_rows(run, arm).groupby("registry", sort=False):
            nets = part["net"].to_numpy()
            low, high = math.nan, math.nan
            if len(nets) > 1 and np.ptp(nets):
                low, high = stats.t.interval(0.95, len(nets) - 1, nets.mean(), stats.sem(nets))
            elif len(nets) > 1:
                low = high = nets.mean()
            cells = (str(len(nets)), signed(nets.mean()), interval(low, high))
            expected.append((arm, name, *cells))
    assert list(table.rows) == expected


def test_rounds_hold_means_of_delivery_and_first_reads(
    run: RunResult, tables: dict[str, Table]
) -> None:
    table = tables["rounds: Means a campaign by round"]
    hits = run.declarations[run.declarations["is_hit"]]
    for row in table.rows:
        arm, at = row[0], int(row[1])
        n = len(arm_rows(run, arm))
        rounds = run.rounds[(run.rounds["arm"] == arm) & (run.rounds["round"] == at)]
        mine = hits[(hits["arm"] == arm) & (hits["first_round"] == at)]
        expected = [
            *(
                number(rounds[c].sum() / n, 1)
                for c in ("proposal_slots", "valid", "accepted", "fallback")
            ),
            number(len(mine) / n),
            number((mine["origin"] == "proposer").sum() / n),
        ]
        assert list(row[2:]) == expected
    certified = sum(float(row[6]) for row in table.rows if row[0] == "prior")
    assert certified == pytest.approx(arm_rows(run, "prior")["true"].mean(), abs=0.03)


def test_gained_shared_and_lost_are_means(run: RunResult, tables: dict[str, Table]) -> None:
    table = tables["overlap: Certified hits by who certifies them, means a campaign"]
    for row, arm in zip(table.rows, ARMS, strict=True):
        means = arm_rows(run, arm).mean(numeric_only=True)
        expected = [
            number(means["gained"]), number(means["shared"]), number(means["lost"]),
            signed(means["net"]), number(means["originated"]), number(means["by_fallback"]),
            number(means["displaced"]),
        ]  # fmt: skip
        assert list(row[1:]) == expected


def test_the_budget_holds_means_of_counts_and_sums_of_usage(
    run: RunResult, tables: dict[str, Table]
) -> None:
    table = tables["budget: Means a campaign"]
    sources = (
        "reads", "observed", "fresh_slots", "proposal_slots", "raw", "valid", "accepted",
        "over_delivered", "invalid", "duplicate", "already_tested", "fallback", "unspent",
        "attempts",
    )  # fmt: skip
    for row, arm in zip(table.rows, ARMS, strict=True):
        assert list(row[1:]) == [number(arm_rows(run, arm)[c].mean(), 1) for c in sources]
    n = len(arm_rows(run, "half"))
    usage = tables["budget: Usage that the proposers reported"]
    assert column(usage, "tokens") == ["-", "-", f"{50 * n} (50.0)"]


def test_the_reach_of_slots_is_counted_by_round(run: RunResult, tables: dict[str, Table]) -> None:
    table = tables["budget: Reach, means a campaign"]
    for row, arm in zip(table.rows, ARMS, strict=True):
        (last,) = set(run.arms[arm].reach.values())
        mine = run.rounds[run.rounds["arm"] == arm]
        near = mine[mine["round"] <= last]
        n = len(arm_rows(run, arm))
        counts = [
            frame[c].sum() / n for c in ("proposal_slots", "accepted") for frame in (mine, near)
        ]
        assert list(row[1:]) == [str(last), *(number(c, 1) for c in counts)]


def test_registries_show_their_nets(run: RunResult, tables: dict[str, Table]) -> None:
    table = tables["registries: Registries and mean net of each arm"]
    for row, entry in zip(table.rows, run.manifest["registries"], strict=True):
        mine = run.campaigns[run.campaigns["registry"] == entry["name"]]
        nets = [signed(mine[mine["arm"] == arm]["net"].mean()) for arm in ARMS]
        share = f"{100 * entry['hits'] / entry['m']:.1f}"
        head = (entry["name"], str(entry["m"]), str(entry["hits"]), share)
        tail = (str(entry["contrary_hits"]), str(len(mine)), *nets, entry["hash"][:12])
        assert row == head + tail


def test_the_ladder_is_the_evidence_of_the_median_campaign(
    run: RunResult, tables: dict[str, Table]
) -> None:
    table = tables["ladder: First 25 ranks, and the last declared and the one after it"]
    records = dict(read_records(run.folder or ""))
    for arm in ARMS:
        rows = arm_rows(run, arm)
        median = sorted(rows["net"])[(len(rows) - 1) // 2]
        seed = int(rows[rows["net"] == median]["seed"].iloc[0])
        (record,) = (r for k, r in records.items() if (k.arm, k.seed) == (arm, seed))
        log_e = np.sort(run.certificate.log_evidence(record))[::-1]
        declared = len(run.certificate.declare(record))
        shown = [row for row in table.rows if row[0] == arm]
        assert len(shown) >= min(25, len(log_e))
        for _, rank, value, bar, is_declared in shown:
            k = int(rank)
            assert value == number(log_e[k - 1])
            assert bar == number(math.log(record.m / (run.certificate.q * k)))
            assert is_declared == ("yes" if k <= declared else "no")
