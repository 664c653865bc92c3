"""A user's own contamination law, by dotted path or file, and the checks that keep it honest.

`my_package.laws:Spiky` or `path/to/file.py:Spiky` names a class that is built as
`Spiky(epsilon, **law_options)` and has `contaminate(batch)`, and `rates(batch)` if it can say how
likely contamination is. It must be a pure function of the batch, read by read, and draw from the
batch alone. Its code is executed: name only what you trust.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from cads_env.contamination.batch import ContaminationLaw, Floats, ReadBatch
from cads_env.errors import ProtocolError, error_text, quoted, suggest
from cads_env.tape import candidate_words, coin_bits, derive_key, scrambled, visit_states
from cads_env.values import said

_TRIED: Final = 12
"""Reads on which a law is tried before the first one that counts."""

_loaded: dict[tuple[str, str], ModuleType] = {}


def is_own(name: str) -> bool:
    """Whether a law's name is a path to a user's class."""
    return ":" in name or name.endswith(".py")


def code_sha256(name: str) -> str | None:
    """SHA-256 of the code of a user's law, part of a run's identity; None for one of ours.

    Args:
        name: The law's name in the protocol.

    Raises:
        ProtocolError: There is no such file or class.
    """
    if not is_own(name):
        return None
    where = name.rpartition(":")[0]
    if where.endswith(".py"):
        return hashlib.sha256(_code(Path(where), name)).hexdigest()
    try:
        raw = Path(inspect.getsourcefile(_class(name)) or "").read_bytes()
    except (TypeError, OSError, ValueError) as error:
        msg = f"Contamination law {quoted(name)} has no source file: {error_text(error)}."
        raise ProtocolError(msg) from error
    return hashlib.sha256(raw).hexdigest()


def make_own(name: str, epsilon: float, options: Mapping[str, Any]) -> ContaminationLaw:
    """A user's law, tried on a few reads and guarded on all others.

    Args:
        name: `module:Class` or `path/to/file.py:Class`.
        epsilon: Probability in [0, 1], the first argument of the class.
        options: Its keyword arguments; whole numbers arrive as floats.

    Raises:
        ProtocolError: It cannot be found, imported or built, or breaks on the reads of the trial.
    """
    found = _class(name)
    # The trial has an instance of its own, so that nothing is left of it.
    _try(_guarded(_built(found, name, epsilon, options), name))
    return _guarded(_built(found, name, epsilon, options), name)


def _guarded(law: Any, name: str) -> GuardedLaw:
    is_rated = callable(getattr(law, "rates", None))
    return RatedGuardedLaw(law, name) if is_rated else GuardedLaw(law, name)


class GuardedLaw:
    """A user's law whose answers are checked; it cannot change what it is told but the reads."""

    def __init__(self, law: Any, name: str) -> None:
        """Guard a law under the name that a protocol gives it."""
        self._law, self._name = law, name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state; a law from a file is found again by its path."""
        return (_revived, (self._name, getattr(self._law, "__dict__", {})))

    def contaminate(self, batch: ReadBatch) -> Floats:
        """The law's reads, shape (r,).

        Raises:
            ProtocolError: The law raised, or returned something that is not r finite numbers.
        """
        return self._asked(self._law.contaminate, batch, "contaminate", "finite numbers")

    def _asked(
        self, method: Callable[[ReadBatch], Any], batch: ReadBatch, call: str, kind: str
    ) -> Floats:
        expected = f"expected shape ({batch.clean.size},), {kind}"
        try:
            answer = np.asarray(method(_read_only(batch)))
            wrong = answer.dtype.kind not in "fiub"
            values: Floats = answer.astype(np.float64) if not wrong else np.empty(0)
        except KeyboardInterrupt:
            raise
        # A law's sys.exit() is its mistake, not a reason to end the run unsaid.
        except BaseException as error:
            msg = (
                f"Contamination law {quoted(self._name)}: {call}(batch) raised "
                f"{type(error).__name__}: {said(error)}; {expected} from every batch."
            )
            raise ProtocolError(msg) from error
        if wrong or values.shape != batch.clean.shape:
            what = f"dtype {answer.dtype}" if wrong else f"shape {values.shape}"
            msg = f"Contamination law {quoted(self._name)}: {call}(batch) gave {what}; {expected}."
            raise ProtocolError(msg)
        fine = np.isfinite(values) if call == "contaminate" else (values >= 0) & (values <= 1)
        if not fine.all():
            at = int(np.argmin(fine))
            msg = (
                f"Contamination law {quoted(self._name)}: {call}(batch) gave {values[at]} for "
                f"read {at} of round {batch.round}; {expected}."
            )
            raise ProtocolError(msg)
        return values


class RatedGuardedLaw(GuardedLaw):
    """A user's law that says how likely contamination is."""

    def rates(self, batch: ReadBatch) -> Floats:
        """The law's probabilities, shape (r,).

        Raises:
            ProtocolError: The law raised, or returned something that is not r probabilities.
        """
        return self._asked(self._law.rates, batch, "rates", "probabilities in [0, 1]")


def _revived(name: str, state: dict[str, Any]) -> GuardedLaw:
    found = _class(name)
    law: Any = object.__new__(found)
    law.__dict__.update(state)
    return _guarded(law, name)


def _read_only(batch: ReadBatch) -> ReadBatch:
    """The batch as it may be handed to anyone: only the clean reads can be written."""
    views = {}
    for name in ("visits", "signal", "coin_bits", "states", "campaign_words", "past_sums",
                 "past_counts", "candidate_table", "positions"):  # fmt: skip
        view = getattr(batch, name).view()
        view.flags.writeable = False
        views[name] = view
    return replace(batch, **views)


def _built(found: type, name: str, epsilon: float, options: Mapping[str, Any]) -> Any:
    try:
        law = found(epsilon, **options)
    except Exception as error:
        msg = (
            f"Contamination law {quoted(name)} cannot be built with epsilon = {epsilon:g} and "
            f"{dict(options)!r}: {type(error).__name__}: {said(error)}."
        )
        raise ProtocolError(msg) from error
    return law


def _try(law: GuardedLaw) -> None:
    """Ask for a few made-up reads, together and one by one.

    Raises:
        ProtocolError: The law breaks, or its answer depends on what else is in the batch.
    """
    whole = law.contaminate(_made_up(range(_TRIED)))
    alone = [float(law.contaminate(_made_up(range(i, i + 1)))[0]) for i in range(_TRIED)]
    if isinstance(law, RatedGuardedLaw):
        law.rates(_made_up(range(_TRIED)))
    if whole.tolist() != alone:
        msg = (
            f"Contamination law {quoted(law._name)} answers differently when the same reads come "
            "one by one. Expected a pure function of each read: draw from batch.coin(p) and "
            "batch.uniform(at), never from a generator of your own, and keep nothing between calls."
        )
        raise ProtocolError(msg)


def _made_up(reads: range) -> ReadBatch:
    """Reads of candidates 0 to 11 of one campaign; every third was read twice before."""
    every = np.arange(_TRIED, dtype=np.int64)
    at = np.arange(reads.start, reads.stop, dtype=np.int64)
    visits = np.where(every % 3 == 2, 2, 0)
    key = np.array([derive_key("trial of a law")], np.uint64)
    states = visit_states(candidate_words(key, every), visits)
    signal = np.linspace(-1.5, 1.25, _TRIED)
    # A read has 12 coin bits of its own, whatever else is asked for.
    bits = coin_bits(scrambled(states, 0))
    return ReadBatch(
        round=1,
        visits=visits[at],
        signal=signal[at],
        clean=signal[at] + 0.125,
        coin_bits=bits[at],
        states=states[at],
        campaign_words=key,
        past_reads=lambda i: np.full(int(visits[at[i]]), float(signal[at[i]])),
        past_sums=(signal * visits)[None, :],
        past_counts=visits[None, :],
        candidate_table=every[None, :],
        positions=at,
    )


def _class(name: str) -> type:
    where, _, attribute = name.rpartition(":")
    if not where or not attribute or name.endswith(".py"):
        msg = (
            f"Contamination law {quoted(name)} names no class; expected my_package.laws:MyLaw or "
            "path/to/file.py:MyLaw."
        )
        raise ProtocolError(msg)
    module = _from_file(Path(where), name) if where.endswith(".py") else _imported(where, name)
    found = getattr(module, attribute, None)
    if not inspect.isclass(found) or not callable(getattr(found, "contaminate", None)):
        laws = [n for n, v in vars(module).items() if hasattr(v, "contaminate")]
        what = "does not exist" if found is None else "is no class with contaminate(batch)"
        msg = f"Contamination law {quoted(name)}: {attribute} {what}. {suggest(attribute, laws)}"
        raise ProtocolError(msg)
    return found


def _imported(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        msg = (
            f"Contamination law {quoted(name)}: module {quoted(module)} cannot be imported: "
            f"{type(error).__name__}: {said(error)}."
        )
        raise ProtocolError(msg) from error


def _code(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        msg = (
            f"Contamination law {quoted(name)}: file {quoted(str(path))} cannot be read: "
            f"{error_text(error)}. A relative path starts at the working directory."
        )
        raise ProtocolError(msg) from error


def _from_file(path: Path, name: str) -> ModuleType:
    """The file's module; a file of another content is another module."""
    raw = _code(path, name)
    digest = hashlib.sha256(raw).hexdigest()
    key = (str(path.absolute()), digest)
    if key not in _loaded:
        module = ModuleType(f"_cads_law_{digest[:16]}_{len(_loaded)}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module
        try:
            exec(compile(raw, str(path), "exec"), vars(module))
        except (Exception, SystemExit) as error:
            del sys.modules[module.__name__]
            msg = (
                f"Contamination law {quoted(name)}: file {quoted(str(path))} failed to load: "
                f"{type(error).__name__}: {said(error)}."
            )
            raise ProtocolError(msg) from error
        _loaded[key] = module
    return _loaded[key]
