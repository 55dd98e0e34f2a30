r"""An accountant of participation: bounds for a run from the participation observed so far.

A server adds one round after the other. The state has a fixed size, O(clients) for each interval.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.consistency import check_agreement
from fedbounds.bounds.evaluation.evaluate import Evaluation, Value, evaluate
from fedbounds.bounds.evaluation.resolution import as_constant
from fedbounds.bounds.inputs.checks import as_list, check_count, check_memory, check_number, is_finite, is_number, quote
from fedbounds.bounds.inputs.output_files import DOCUMENT, Output, write_output
from fedbounds.bounds.inputs.user_files import read_text
from fedbounds.bounds.participation.constants import centered_offsets
from fedbounds.bounds.search.rounds import rounds as rounds_to_reach
from fedbounds.bounds.search.rounds_answers import Reached
from fedbounds.bounds.theory.argument_checks import check_constants, names_of
from fedbounds.bounds.theory.expectation import PREFIX, ExpectedStatement, expected_statement
from fedbounds.bounds.theory.registry import as_result
from fedbounds.bounds.theory.result import Form, Result, reachable
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.monitoring.account_protocol import (
    OF_LAW,
    Account,
    AccountFacts,
    AccountQuestion,
    Declared,
    Name,
    Remaining,
    State,
    _Read,
    accounts,
    analysis_interval,
    assumptions_of_form,
    checksum,
    client_names,
    sets_steps_by_rounds,
)
from fedbounds.empirical.participation import Process, Recorded, process_from_spec
from fedbounds.empirical.participation.mixing import Mixing, Presences
from fedbounds.empirical.participation.process_tests import Conformity, Declaration
from fedbounds.empirical.participation.spec import Participation, as_process

FORMAT = "fedbounds participation account, version 3"
LARGEST = 2**28  # bytes of a saved account


class ParticipationAccountant:
    r"""The participation observed so far, and the bounds that follow from it.

    Weights that are not given are those of the declared process: $q_t^n=\frac1{S_t}$ for each of $S_t$ participants, or
    $\frac1N$ where it is not normalized; $\frac1{S_t}$ if nothing is declared. The state holds what these need:

    $$\tilde\delta^2(P)=\max_{t_0\in\{0,P,\dots\}}\Big\|\sum_n\overline{q^n_{t_0}}\nabla F_n-\nabla f\Big\|^2,\qquad
      \frac1{NT}\sum_{t,n}(p_n\omega_t^n-1)^2,\qquad
      \hat r=\frac{\sum_{t,n}(\mathbb 1_t^n-\hat p_n)(\mathbb 1_{t+1}^n-\hat p_n)}{(T-1)\sum_n\hat p_n(1-\hat p_n)}$$

    where $\omega_t^n$ are FedAU's weights with cut-off K. The participants of each round are *not* kept: another
    interval P, window start or K, or a process that is declared afterwards, needs the record (`Recorder`).

    Args:
        clients: N, whose names are then 0, ..., N - 1; or the names, strings or whole numbers.
        process: the declared participation process, or None.
        intervals: the P to be accounted, besides 1.
        cutoff: K of FedAU's weights, or infinity.
        offsets: $\nabla F_n-\nabla f$, (clients, dimension), where they are the same at every x; without them
            $\tilde\delta$ is bounded by the d of Assumption 3.
        error: the probability that a true declaration is ever refuted, in (0, 1).

    Raises:
        FedboundsError: a number outside its domain, names that are not different, a process of other clients.

    Example:
        >>> from fedbounds.empirical.participation import Bernoulli
        >>> accountant = ParticipationAccountant(["a", "b"], Bernoulli(2, 0.5), intervals=[2])
        >>> for present in (["a"], ["b"], ["a", "b"], ["a"]):
        ...     accountant.add(present)
        >>> accountant.rounds, accountant.conformity().status
        (4, 'not refuted')
        >>> accountant.quantities()["arbitrary-participation"]["delta^2(2) over d^2"]
        0.25
        >>> again = ParticipationAccountant.from_json(accountant.to_json())
        >>> again.quantities() == accountant.quantities()
        True

    Source: Wang & Ji 2022, eq. (7); Wang & Ji 2024, Algorithm 2 and Theorem 2.
    """

    def __init__(
        self,
        clients: int | Sequence[Name],
        process: Process | None = None,
        *,
        intervals: Iterable[int] = (),
        cutoff: float = 50,
        offsets: ArrayLike | None = None,
        error: float = 1e-3,
    ) -> None:
        self.names = client_names(clients)
        self.places: dict[Hashable, int] = {name: n for n, name in enumerate(self.names)}
        N = len(self.names)
        if process is not None and not isinstance(process, Process):
            raise FedboundsError(f"process = {quote(process)} must be a participation process, or None")
        if process is not None and process.clients != N:
            raise FedboundsError(f"the process is of {process.clients} clients, and there are {N}")
        listed = [check_count(f"intervals[{i}]", P) for i, P in enumerate(as_list("intervals", intervals))]
        lengths = tuple(sorted({1, *listed}))
        check_memory(f"clients = {N} and {len(lengths)} intervals", 8 * N * (20 + 3 * len(lengths)))
        K = np.inf if is_number(cutoff) and cutoff == np.inf else check_count("cutoff", cutoff, why="or inf for never")
        v = None if offsets is None else centered_offsets(offsets, N)
        self.error = check_number("error", error, 0, 1)
        if not 0 < self.error < 1:
            raise FedboundsError(f"error = {error:g} must lie in (0, 1)")
        self.declared = Declared(N, process, lengths, K, v)
        self.accounts: dict[str, Account] = accounts(self.declared)
        self._declaration, self.presences = Declaration(process, self.error), Presences(N)

    def __repr__(self) -> str:
        """One line; see also `quantities` and `conformity`."""
        process = "no process" if self.declared.process is None else type(self.declared.process).__name__
        return f"<ParticipationAccountant of {len(self.names)} clients: {self.rounds} rounds, {process} declared>"

    @property
    def rounds(self) -> int:
        """T, how many rounds there were."""
        return self.presences.rounds

    @property
    def participations(self) -> np.ndarray:
        """How often each client took part, (clients,)."""
        return self.presences.state["present"].copy()

    def add(self, participants: Iterable[Name] | Mapping[Name, float], weights: Iterable[float] | None = None) -> None:
        """Add one round, with or without participants.

        Results that assume weights of sum one do not count a round without, if P = 1 or eta = 1: it changes nothing.

        Args:
            participants: their names, or their weights by name.
            weights: one for each of them, positive.

        Raises:
            FedboundsError: an unknown or repeated name, or an invalid weight; nothing is changed.

        Example:
            >>> accountant = ParticipationAccountant(3)
            >>> accountant.add([0, 2])
            >>> accountant.add({1: 0.75, 2: 0.25})
            >>> accountant.participations.tolist()
            [1, 1, 2]
        """
        present, q = self._round(participants, weights)
        self._declaration.add(self.rounds, present, q, self.names)
        for account in self.accounts.values():
            account.add(self.rounds, present, q)
        self.presences.add(present)

    def add_record(self, record: Participation) -> None:
        """Add every round of a record, in any layout that `Recorded.read` takes.

        Args:
            record: a file, or the record in memory; of 0 and 1, participants have the weights of the declared process.

        Raises:
            FedboundsError: not a record of these clients, or a round that `add` refuses.

        Example:
            >>> accountant = ParticipationAccountant(["a", "b", "c"])
            >>> accountant.add_record({"round": [0, 0, 2], "client": ["c", "a", "b"]})
            >>> accountant.rounds, accountant.participations.tolist()
            (3, [1, 1, 1])
        """
        given, N = as_process(record, self.names), len(self.names)
        if not isinstance(given, Recorded) or given.clients != N:
            raise FedboundsError(
                f"{given.kind} participation of {given.clients} clients must be a record of {N} clients"
            )
        attendance = np.isin(given.weights, (0.0, 1.0)).all()
        for row in np.asarray(given.weights):
            present = {self.names[n]: float(row[n]) for n in np.flatnonzero(row)}
            self.add(list(present) if attendance else present)

    def quantities(self) -> dict[str, dict[str, float]]:
        r"""The quantities of each paper for the rounds so far, by paper and name; divergences are squared.

        Example:
            >>> accountant = ParticipationAccountant(2, offsets=[[-2.0], [2.0]], intervals=[2], cutoff=3)
            >>> for n in (0, 1, 0, 0):
            ...     accountant.add([n])
            >>> accountant.quantities()["arbitrary-participation"]["delta^2(2)"]
            4.0
            >>> accountant.quantities()["fedau"]["largest weight"]
            2.0
        """
        return {paper: account.quantities(self.rounds) for paper, account in self.accounts.items()}

    def mixing(self) -> Mixing:
        r"""The correlation of presence in successive rounds, and the mixing time that it implies.

        An estimate; the correlation determines the mixing time only for chains of two states.
        `quantities` has $P\,\mathrm{Var}(\overline q)$ for each interval, which tends to the long-run variance
        $\hat\upsilon^2$ of whatever mixes.

        Raises:
            FedboundsError: fewer than two rounds.

        Source: Wang & Ji 2022, Lemma 4.5 and Proposition 4.6.
        """
        return self.presences.mixing()

    def conformity(self) -> Conformity:
        r"""Whether the observed participation fits the declared process, by exact tests valid after every round.

        An impossible round refutes the process at once; unlikely rounds do when an e-value exceeds $1/\text{error}$. A
        true declaration is ever refuted with probability at most `error`, however often this is called. Not refuted
        does not mean proved: see `untested`; a small deviation needs many rounds.

        Example:
            >>> from fedbounds.empirical.participation import Cyclic
            >>> accountant = ParticipationAccountant(3, Cyclic(3))
            >>> for n in (0, 1, 1):
            ...     accountant.add([n])
            >>> found = accountant.conformity()
            >>> found.status, found.why
            ('impossible', 'round 2: client 1 was present, out of turn')

        Source: Ville's inequality; `fedbounds.empirical.participation.bets`.
        """
        return self._declaration.conformity()

    def bound(
        self,
        result: Result | str,
        given: Mapping[str, Value],
        form: str | None = None,
        *,
        interval: int | None = None,
        assume: str | Iterable[str] = (),
        trust: str | Iterable[str] = (),
    ) -> Evaluation:
        r"""The bound of a result for the rounds so far.

        If the result holds given the participation, the constants of participation are those of the observed rounds. If
        it is about a distribution of participation, as every `-expected` result, they are expectations over the
        declared process; without a stationary declared process, such a result is no guarantee. Nothing that depends on
        the declaration is a guarantee if `conformity` refutes it or cannot test it. It is assumed that the run is one
        of the result's algorithm.

        Args:
            result: the result, or its key.
            given: the other constants, by symbol or concept.
            form: its name or kind; the strongest one that is not refuted by default.
            interval: P of the analysis; that of `given`, or the only accounted one, by default.
            assume, trust: as for `fedbounds.evaluate`.

        Raises:
            FedboundsError: a constant is missing or contradicts the observed rounds, an interval was not accounted, or
                no round was added.

        Example:
            >>> accountant = ParticipationAccountant(3, intervals=[3])
            >>> for t in range(30):
            ...     accountant.add([t % 3])
            >>> known = dict(L=1, F=1.5, I=1, gamma=1/36, eta=6, sigma=0, d=2)
            >>> theorem = "arbitrary-participation/theorem-3.1"
            >>> found = accountant.bound(theorem, known, "explicit", assume="all")
            >>> round(float(found.value), 6), found.guarantee, float(found.constants["delta"].value)
            (6.4, True, 0.0)

        Source: the result's.
        """
        statement, known, facts, reasons = self._applied_statement(result, given, form, interval, ahead=False)
        result, chosen = statement.result, statement.form
        evaluation = evaluate(
            result,
            known,
            form=chosen.name,
            assume=self._assumed_names(chosen, facts, assume),
            checked=assumptions_of_form(chosen, facts.checked),
            trust=trust,
        )
        return evaluation.revoke(*reasons)

    def rounds_left(
        self,
        result: Result | str,
        epsilon: float,
        given: Mapping[str, Value],
        form: str | None = None,
        *,
        interval: int | None = None,
        assume: str | Iterable[str] = (),
    ) -> Remaining:
        r"""The number of further rounds until the bound is at most epsilon; 0 if it already is.

        For future rounds the constants of participation are those of the declared process, if it is stationary and
        covered by the result; otherwise those of the rounds so far, and the answer is an estimate without guarantee.
        If the declared participation is random and the result holds given the participation, the answer is that of the
        result in expectation over participation (`-expected`), which `print` names.

        Args:
            result, given, form, interval, assume: as for `bound`.
            epsilon: the target, positive.

        Raises:
            FedboundsError: as for `bound`; an epsilon that is not positive.

        Example:
            >>> from fedbounds.empirical.participation import Full
            >>> accountant = ParticipationAccountant(4, Full(4))
            >>> for t in range(100):
            ...     accountant.add(range(4))
            >>> known = dict(L=1, F=1, I=1, P=1, gamma=0.01, eta=10, sigma=0, d=1)
            >>> theorem = "arbitrary-participation/theorem-3.1"
            >>> left = accountant.rounds_left(theorem, 0.1, known, "explicit", assume="all")
            >>> left.seen + left.more == left.answer.rounds, left.guarantee
            (True, True)

        Source: as `fedbounds.rounds`.
        """
        named = result
        statement, known, facts, reasons = self._applied_statement(result, given, form, interval, ahead=True)
        result, chosen = statement.result, statement.form
        taken = self._assumed_names(chosen, facts, statement.assumed(assume))
        answer = rounds_to_reach(result, epsilon, known, form=chosen.name, assume=tuple(taken))
        title = f"{result.key} [{chosen.name}]"
        counted, notes = self.rounds - facts.empty, statement.notes
        if facts.empty:
            notes += (f"{facts.empty} of {self.rounds} rounds had no participants: they change nothing, not counted",)
        now = self._target_reached(named, epsilon, given, form, interval, assume, counted)
        if now is not None:
            return now
        if not isinstance(answer, Reached):
            reasons = (*reasons, "no number of rounds is known to reach the target")
            return Remaining(answer, counted, None, False, reasons, title, notes)
        if sets_steps_by_rounds(result, chosen):
            reasons = (
                *reasons,
                "the result sets step sizes by the number of rounds, which was not known when they were set",
            )
        assert answer.evaluation is not None
        there = evaluate(
            result,
            answer.evaluation.constants,
            form=chosen.name,
            assume=taken,
            checked=assumptions_of_form(chosen, facts.checked),
            strict=False,
        ).revoke(*reasons)
        more = max(0, answer.rounds - counted)
        return Remaining(answer, counted, more, there.guarantee, there.why_not, title, notes)

    def _target_reached(
        self,
        result: Result | str,
        epsilon: float,
        given: Mapping[str, Value],
        form: str | None,
        interval: int | None,
        assume: str | Iterable[str],
        counted: int,
    ) -> Remaining | None:
        """The answer without further rounds if the bound is at most epsilon already; else None."""
        try:
            now = self.bound(result, given, form, interval=interval, assume=assume)
        except FedboundsError:  # no complete window yet, say
            return None
        if sets_steps_by_rounds(now.result, now.form) or not (now.valid and now.value <= epsilon):
            return None
        counters = {q.name for q in now.result.notation.values() if q.concept == "rounds"}
        known = {n: c for n, c in now.constants.items() if n not in counters and c.source != "derived"}
        taken = tuple(name for name, status in now.assumptions.items() if status == "assumed")
        answer = rounds_to_reach(now.result, epsilon, known, form=now.form.name, assume=taken)
        if not isinstance(answer, Reached) or answer.rounds > counted:
            return None
        return Remaining(answer, counted, 0, now.guarantee, now.why_not, now.view.title)

    # --- Saving --------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The declaration and the state as JSON; an account read from it continues bit for bit the same."""
        declared = self.declared
        arrays = {key: {"dtype": a.dtype.name, "values": a.tolist()} for key, a in self._state().items()}
        document = {
            "format": FORMAT,
            "clients": list(self.names),
            "process": None if declared.process is None else declared.process.spec(),
            "intervals": list(declared.intervals),
            "cutoff": None if declared.cutoff == np.inf else declared.cutoff,
            "offsets": None if declared.offsets is None else declared.offsets.tolist(),
            "error": self.error,
            "broken": self._declaration.broken,
            "state": arrays,
        }
        document = json.loads(json.dumps(document, default=np.ndarray.tolist))  # as it is read again
        return json.dumps(document | {"checksum": checksum(document)})

    @classmethod
    def from_json(cls, text: str) -> ParticipationAccountant:
        """An account as `to_json` wrote it.

        Raises:
            FedboundsError: it is damaged, or of another version.
        """
        try:
            document = json.loads(text)
        except ValueError as error:
            raise FedboundsError(f"the account is no JSON: {' '.join(str(error).split())}") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise FedboundsError(f"the account must be of the format {FORMAT!r}")
        if document.pop("checksum", None) != checksum(document):
            raise FedboundsError("the account is damaged: its checksum is not that of its contents; load a saved copy")
        try:
            spec, cutoff, state = document["process"], document["cutoff"], document["state"]
            account = cls(
                document["clients"],
                None if spec is None else process_from_spec(spec),
                intervals=document["intervals"],
                cutoff=np.inf if cutoff is None else cutoff,
                offsets=None,
                error=document["error"],
            )
            if document["offsets"] is not None:  # centered before; centering again would change the last bit
                account._set_offsets(np.array(document["offsets"], dtype=float))
            account._declaration.broken = str(document["broken"])
            account._restore(state)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, FedboundsError):
                raise FedboundsError(f"the account is damaged: {error}") from None
            raise FedboundsError(f"the account is damaged: {type(error).__name__}: {quote(str(error))}") from None
        return account

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the account to a file, whole or not at all; an account that is there is overwritten.

        Args:
            path: of the file.
            force: overwrite any other file, too.

        Raises:
            FedboundsError: the file cannot be written, or is another file.
        """
        output = Output(Path(path), DOCUMENT + b"fedbounds participation account")
        write_output(output, self.to_json().encode(), force)

    @classmethod
    def load(cls, path: str | Path) -> ParticipationAccountant:
        """Read an account from a file.

        Raises:
            FedboundsError: it cannot be read, or is damaged.
        """
        try:
            return cls.from_json(read_text(path, f"the account {path}", LARGEST))
        except FedboundsError as error:
            raise FedboundsError(f"{path}: {error}" if str(path) not in str(error) else str(error)) from None

    def _state(self) -> State:
        parts = {"presences": self.presences.state, "declaration": self._declaration.state}
        parts |= {paper: account.state for paper, account in self.accounts.items()}
        return {f"{part}/{key}": array for part, state in parts.items() for key, array in state.items()}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        state = self._state()
        if saved.keys() != state.keys():
            raise FedboundsError(f"its state has other parts: {', '.join(sorted(saved.keys() ^ state.keys()))}")
        for key, array in state.items():
            values = np.array(saved[key]["values"], dtype=array.dtype)
            if values.shape != array.shape or saved[key]["dtype"] != array.dtype.name:
                raise FedboundsError(f"{key} has shape {values.shape}; expected {array.shape} of {array.dtype}")
            array[...] = values
        wrong = self.presences.inconsistency() or next(
            (why for account in self.accounts.values() if (why := account.inconsistency(self.presences))), ""
        )
        if wrong:
            raise FedboundsError(f"{wrong}, which no {self.rounds} rounds can give")

    def _set_offsets(self, offsets: np.ndarray) -> None:
        before = self.declared
        self.declared = Declared(before.clients, before.process, before.intervals, before.cutoff, offsets)
        self.accounts = accounts(self.declared)

    # --- Questions -----------------------------------------------------------------------------------------------

    def _round(
        self, participants: Iterable[Name] | Mapping[Name, float], weights: Iterable[float] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The participants, booleans (N,), and their weights (N,)."""
        if isinstance(participants, Mapping):
            if weights is not None:
                raise FedboundsError("weights are given twice: with the participants and on their own")
            participants, weights = list(participants), list(participants.values())
        who = as_list("participants", participants)
        present, q = np.zeros(len(self.names), bool), np.zeros(len(self.names))
        for name in who:
            n = self.places.get(name) if isinstance(name, Hashable) and not isinstance(name, bool) else None
            if n is None:
                raise unknown_name("client", str(name), map(str, self.names))
            if present[n]:
                raise FedboundsError(f"client {name!r} is named twice in round {self.rounds}: give weights instead")
            present[n] = True
        at = [self.places[name] for name in who]
        if weights is None:
            q[at] = 1 / self._declaration.share(len(at))
            return present, q
        numbers = as_list("weights", weights)
        if len(numbers) != len(who):
            raise FedboundsError(f"there are {len(who)} participants and {len(numbers)} weights")
        for name, number in zip(who, numbers, strict=True):
            if not is_finite(number) or not number > 0:
                raise FedboundsError(f"the weight {quote(number)} of client {name!r} must be a positive number")
        q[at] = numbers
        return present, q

    def _applied_statement(
        self, result: Result | str, given: Mapping[str, Value], form: str | None, interval: int | None, *, ahead: bool
    ) -> tuple[ExpectedStatement, dict[str, Value], AccountFacts, tuple[str, ...]]:
        """The statement that applies, all constants, facts on its assumptions, and why it may not cover the run."""
        result = as_result(result)
        check_constants(given)
        if not self.rounds:
            raise FedboundsError("no round was added yet: there is nothing to bound")
        statement, process = ExpectedStatement(result, result.form(form), result.key), self.declared.process
        if ahead and statement.given_participation and process is not None and not process.certain(self.rounds):
            statement = expected_statement(statement)
        result, chosen, own = statement.result, statement.form, dict(given)
        numbers = {}
        for name in given:
            quantity = result.notation.resolve(name)
            if quantity is not None and not isinstance(given[name], NoConstant):
                numbers[quantity.concept] = as_constant(quantity, given[name]).value
        P = analysis_interval(self.declared.intervals, interval, numbers.get("interval"))
        used = reachable(chosen, prescribed=True)
        of_law = any(a.participation and a.name.startswith(PREFIX) for a in chosen.assumptions)
        account, reasons = self.accounts.get(result.paper), ()
        facts = AccountFacts()
        if account is None:
            reasons = (f"not known to cover this run: {result.paper} has no account of participation",)
        else:
            scalars = _Read({name: float(value) for name, value in numbers.items() if np.ndim(value) == 0})
            facts = account.facts(AccountQuestion(P, self.rounds, scalars, ahead or of_law))
            idle = {q.name for q in result.notation.values() if q.name not in used and q.concept in scalars.read}
            own = {n: v for n, v in own.items() if (q := result.notation.resolve(n)) is None or q.name not in idle}
        if of_law and facts.empty:
            why = "a result in expectation over participation needs weights of sum one in every round"
            facts = replace(facts, outside=f"{facts.empty} of {self.rounds} rounds have no participants, and {why}")
        if facts.outside and any(a.name == "weights" for a in chosen.assumptions):
            raise FedboundsError(f"{result.key} [{chosen.name}] does not cover this run: {facts.outside}")
        constants = dict(facts.constants) | {"interval": Constant(float(P), "given", "of the algorithm")}
        if not ahead:
            constants.setdefault("rounds", Constant(float(self.rounds), "exact", "so far"))
        for quantity in result.notation.values():
            fact = constants.get(quantity.concept)
            if fact is None or quantity.name not in used:
                continue
            if quantity.concept not in numbers:
                own[quantity.name] = fact
            elif fact.source != "estimated":
                check_agreement(quantity, np.asarray(numbers[quantity.concept]), np.asarray(fact.value), fact.note)
        estimated = any(isinstance(c, Constant) and c.source == "estimated" for c in own.values())
        if of_law and not facts.trusting and estimated:
            reasons += (OF_LAW,)
        lacking = [q.name for q in result.notation.values() if q.name in used and q.concept.endswith("_divergence")]
        if lacking and self.declared.offsets is None and "gradient_divergence_sup" not in numbers:
            lacking = [name for name in lacking if name not in own and result.notation[name].concept not in numbers]
            if lacking:
                raise FedboundsError(
                    f"{result.key} [{chosen.name}] needs {', '.join(lacking)}: give d (gradient_divergence_sup), from "
                    "which all follow, or offsets= to the accountant"
                )
        if ahead:
            own = {n: v for n, v in own.items() if (q := result.notation.resolve(n)) is None or q.concept != "rounds"}
        participation = {a.name for a in chosen.assumptions if a.participation}
        found = self.conformity()
        if (facts.trusting or participation & facts.implied) and found.status != "not refuted":
            reasons += (f"not known to cover this run: {found.why}",)
        if not participation and not (self.presences.state["present"] == self.rounds).all():
            reasons += (
                "not known to cover this run: the result says nothing of who takes part, and here not every client "
                "took part in every round",
            )
        return statement, own, facts, (*statement.doubts, *reasons)

    def _assumed_names(self, form: Form, facts: AccountFacts, assume: str | Iterable[str]) -> set[str]:
        """The assumptions taken for granted by the user, or implied by the declared process."""
        return {*names_of("assume", assume), *(a.name for a in form.assumptions if a.name in facts.implied)}
