"""Scores: outcome, twin, net and origins of a campaign, against the oracle, after its end.

This and the channel are the only places that look into an oracle. Everything here is a function of
a record, a certificate and an oracle; nothing flows back into a campaign.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cads_env.campaign import open_screen, play
from cads_env.certificate import Certificate, Declaration, naive_bh
from cads_env.contamination import code_sha256
from cads_env.errors import CertificateError, InvariantError, suggest
from cads_env.proposer import Proposal, View
from cads_env.protocol import Protocol
from cads_env.record import PROPOSER, Record
from cads_env.registry import Oracle, Registry

TWIN_CACHE_BYTES: Final = 256 * 1024 * 1024
"""Most memory that cached twin records may take; the least recently used go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The score of one campaign beside its twin's.

    Identities, asserted on every campaign: net = true - twin_true = gained - lost
    = originated - displaced, and true = originated + by_fallback.

    Attributes:
        tested_hits: Hits among the candidates read: the raw hit count.
        proposed_hits: Hits among the accepted proposals.
        declared: Candidates declared.
        true: Declared hits (T).
        false: Declared nulls.
        twin_true: Declared hits of the twin.
        twin_false: Declared nulls of the twin.
        net: true - twin_true.
        gained: Hits declared by the arm and not by its twin.
        lost: Hits declared by the twin and not by the arm.
        shared: Hits declared by both.
        originated: Declared hits that the proposer named first.
        by_fallback: Declared hits that the fallback drew first.
        displaced: twin_true - by_fallback; may be negative.
        naive_true: Hits that naive BH declares on the same reads.
        naive_false: Nulls that naive BH declares on the same reads.
    """

    tested_hits: int
    proposed_hits: int
    declared: int
    true: int
    false: int
    twin_true: int
    twin_false: int
    net: int
    gained: int
    lost: int
    shared: int
    originated: int
    by_fallback: int
    displaced: int
    naive_true: int
    naive_false: int


class Scored(NamedTuple):
    """A scored campaign.

    Attributes:
        outcome: The score.
        declaration: The arm's declaration.
        is_hit: Whether each declared candidate is a hit, shape (D,).
        in_twin: Whether the twin declares it too, shape (D,).
    """

    outcome: Outcome
    declaration: Declaration
    is_hit: NDArray[np.bool_]
    in_twin: NDArray[np.bool_]


def score(record: Record, twin: Record, oracle: Oracle, certificate: Certificate) -> Scored:
    """Declare from a record and compare with the oracle and the twin.

    Args:
        record: The arm's record.
        twin: The twin's record, on the same registry, seed and noise.
        oracle: The registry's oracle.
        certificate: Judges both records.

    Returns:
        Outcome, declaration, and what each declared candidate is.

    Raises:
        InvariantError: An identity of `Outcome` is broken (a bug in this package).
    """
    declaration = certificate.declare(record)
    labels = oracle.labels
    is_hit = labels[declaration.indices]
    hits = declaration.indices[is_hit]
    twin_indices = certificate.declare(twin).indices
    twin_hits = twin_indices[labels[twin_indices]]
    proposed = record.candidates[record.origins == PROPOSER]
    naive = naive_bh(
        record.means,
        record.counts,
        certificate.q,
        m=record.m,
        s=certificate.s,
        indices=record.candidates,
    )
    shared = int(np.isin(hits, twin_hits).sum())
    originated = int(np.isin(hits, proposed).sum())
    fallback = record.candidates[record.origins != PROPOSER]
    by_fallback = int(np.isin(hits, fallback).sum())
    outcome = Outcome(
        tested_hits=int(labels[record.candidates].sum()),
        proposed_hits=int(labels[proposed].sum()),
        declared=declaration.indices.size,
        true=hits.size,
        false=declaration.indices.size - hits.size,
        twin_true=twin_hits.size,
        twin_false=twin_indices.size - twin_hits.size,
        net=hits.size - twin_hits.size,
        gained=hits.size - shared,
        lost=twin_hits.size - shared,
        shared=shared,
        originated=originated,
        by_fallback=by_fallback,
        displaced=twin_hits.size - by_fallback,
        naive_true=int(labels[naive].sum()),
        naive_false=int(naive.size - labels[naive].sum()),
    )
    _assert_identities(outcome, record)
    return Scored(outcome, declaration, is_hit, np.isin(declaration.indices, twin_indices))


def _assert_identities(outcome: Outcome, record: Record) -> None:
    identities = {
        "net = gained - lost": outcome.net == outcome.gained - outcome.lost,
        "net = originated - displaced": outcome.net == outcome.originated - outcome.displaced,
        "true = originated + by_fallback": outcome.true == outcome.originated + outcome.by_fallback,
        "raw = valid + invalid + duplicate + already_tested": all(
            d.raw == d.valid + d.invalid + d.duplicate + d.already_tested for d in record.deliveries
        ),
        "valid = accepted + over_delivered": all(
            d.valid == d.accepted + d.over_delivered for d in record.deliveries
        ),
        "fresh_slots = accepted + fallback": all(
            d.fresh_slots == d.accepted + d.fallback for d in record.deliveries
        ),
    }
    broken = [name for name, holds in identities.items() if not holds]
    if broken:
        msg = f"Broken identities: {'; '.join(broken)}, in {outcome}. Please report this bug."
        raise InvariantError(msg)


def resolve_certificate(
    certificate: Certificate | Mapping[str, Any] | None, protocol: Protocol
) -> Certificate:
    """The certificate of a run: as given, or the protocol's default with some fields changed.

    Args:
        certificate: A certificate, or fields of one by name: `epsilon_bar`, `theta`, `s`, `q` and
            `audit`.
        protocol: Gives the default; an audit needs its controls.

    Raises:
        CertificateError: Unknown field or value out of range, or an audit without controls.
    """
    judge = _certificate(certificate, protocol)
    if judge.audit is not None and not protocol.audit_controls:
        msg = (
            f"The certificate has an audit and the protocol {protocol.name!r} no controls. Set "
            "audit_controls to their number (for example audit_controls=200), or leave `audit` out."
        )
        raise CertificateError(msg)
    return judge


def _certificate(
    certificate: Certificate | Mapping[str, Any] | None, protocol: Protocol
) -> Certificate:
    if isinstance(certificate, Certificate):
        return certificate
    if certificate is not None and not isinstance(certificate, Mapping):
        msg = f"certificate is {certificate!r}; expected a Certificate or a mapping of its fields."
        raise CertificateError(msg)
    numbers = protocol.certificate._asdict()
    known = [field.name for field in fields(Certificate)]
    for name in certificate or {}:
        if name not in known:
            msg = f"Unknown certificate field {name!r}. {suggest(str(name), known)}"
            raise CertificateError(msg)
    return Certificate(**(numbers | dict(certificate or {})))


class TwinCache:
    """Twin records by what they depend on, least recently used first out; safe under threads."""

    def __init__(self, limit_bytes: int = TWIN_CACHE_BYTES) -> None:
        """Start empty.

        Args:
            limit_bytes: Most memory for the records' arrays.
        """
        self._records: OrderedDict[tuple[str | int | None, ...], Record] = OrderedDict()
        self._limit, self._size = limit_bytes, 0
        self._lock = threading.Lock()

    def get(self, registry: Registry, oracle: Oracle, protocol: Protocol, seed: int) -> Record:
        """The twin's record, played when it is not cached.

        It depends on the registry's public and private hash, the protocol less quotas, attempts and
        proposer feedback, the code of a user's contamination law, and the seed.
        """
        law = code_sha256(protocol.law)
        key = (registry.hash, oracle.hash, protocol.twin_hash, law, seed)
        with self._lock:
            record = self._records.get(key)
        if record is None:
            # Outside the lock: two threads may play the same twin, and both get the same.
            record = play_twin(registry, oracle, protocol, seed)
        with self._lock:
            if key not in self._records:
                self._records[key] = record
                self._size += _bytes_of(record)
            self._records.move_to_end(key)
            while self._size > self._limit and len(self._records) > 1:
                _, oldest = self._records.popitem(last=False)
                self._size -= _bytes_of(oldest)
        return record


def _bytes_of(record: Record) -> int:
    arrays = (
        record.candidates, record.origins, record.slots, record.values, record.audit_values,
    )  # fmt: skip
    return sum(array.nbytes for array in arrays)


TWINS: Final = TwinCache()
"""The process-wide cache."""


def play_twin(registry: Registry, oracle: Oracle, protocol: Protocol, seed: int) -> Record:
    """The record of the proposer-removed loop on the same registry, seed and noise."""
    return play(open_screen([(registry, oracle)], [seed], protocol), [None])[0]


class _Ranking:
    """Proposes untested candidates in a fixed order."""

    def __init__(self, order: Sequence[str]) -> None:
        self._order = order

    def propose(self, view: View) -> Proposal:
        tested = set(view.tested)
        names: list[str] = []
        for name in self._order:
            if len(names) >= view.slots:
                break
            if name not in tested:
                names.append(name)
        return Proposal(tuple(names))


def play_reference(registry: Registry, oracle: Oracle, protocol: Protocol, seed: int) -> Record:
    """The record of the effect-ranked reference: candidates proposed by their true signal.

    It shows what perfect ranking reaches under the protocol. It knows the truth, so it is no agent,
    and every table marks it. The proposer's quota and feedback do not bind it.
    """
    order: NDArray[np.int64] = np.argsort(-oracle.signal, kind="stable")
    proposer = _Ranking([registry.identifiers[i] for i in order.tolist()])
    free = protocol.override(quota=None, first_quota=None, feedback_proposer="full")
    return play(open_screen([(registry, oracle)], [seed], free), [proposer])[0]
