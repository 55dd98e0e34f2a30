"""Advice from a log of participation or a declared process: `fedbounds.advise`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.advice.advise import Advice, Watch
from fedbounds.bounds.advice.advise import advise as advise_question
from fedbounds.bounds.advice.request import Presence, Question
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.bounds.theory.problem_class import ProblemClass
from fedbounds.empirical.monitoring.account_protocol import AccountQuestion
from fedbounds.empirical.monitoring.accountant import ParticipationAccountant
from fedbounds.empirical.participation import Process, Recorded, process_from_spec

LONGEST = 100  # intervals up to this are accounted
DRAWN = 400  # rounds that are drawn of a process whose moments change from round to round
BETTER = 0.99  # largest ratio to the window divergence of the interval before, for an interval to be tried
CLOSEST = 1.15  # smallest ratio of two intervals that are tried

AFRESH = ("uniform-sampling", "with-replacement", "independent-rounds", "coins-known-rates", "coins-unknown-rates")
ACCEPTED = ("not refuted", "not tested")  # statuses of a log and a declared process that fit


def advise(setting: str | Path | Mapping[str, Any], *, paper: str | None = None, watch: Watch | None = None) -> Advice:
    """The best settings for a target, from every result that covers the problem.

    Args:
        setting: the path of a TOML file, or its content as a dictionary (see the page *Choose step sizes*).
        paper: only this one.
        watch: called with (results done, results in all, now=the current one).

    Raises:
        FedboundsError: an unknown, missing or invalid entry; a log that cannot be read.

    Example:
        >>> setting = {"setting": "non-convex, arbitrary participation, bounded heterogeneity, bounded variance",
        ...            "target": 0.1, "measure": "squared gradient norm of f", "choose": {"local_steps": [1, 10]},
        ...            "constants": dict(smoothness=1, initial_gap=5, gradient_noise=1, gradient_divergence_sup=1),
        ...            "participation": {"kind": "full", "clients": 10}}
        >>> found = advise(setting, paper="arbitrary-participation").of("arbitrary-participation/theorem-3.1")
        >>> found.status, found.at["P"], found.guarantee
        ('reached', 1.0, False)
    """
    if isinstance(setting, str | Path):
        document = read_toml(setting)
    elif isinstance(setting, Mapping):
        document = setting
    else:
        raise FedboundsError(f"setting = {quote(setting)} must be the path of a TOML file, or a dictionary")
    table = document.get("participation")
    longest = document.get("choose", {})
    who = None if table is None else _participation(table, longest if isinstance(longest, Mapping) else {})
    question = Question.of(document, who)
    if who is not None and who.logged:
        _check_setting(question.setting, who)
    return advise_question(question, paper=paper, watch=watch)


@dataclass
class Observed:
    """Participation as an accountant of a log, or of a declared process, describes it."""

    accountant: ParticipationAccountant  # with the rounds of the log, or rounds drawn from the process
    logged: int  # the number of rounds of the log
    present: float  # the mean number of participants
    _empty: int = 0  # rounds of the log without participants
    seen: dict[tuple[str, int, float | None], Presence] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What is known, in one line."""
        process, N = self.accountant.declared.process, self.accountant.declared.clients
        counts = f"{N} clients, {self.present:.4g} in a round on average"
        log = [f"a log of {self.logged} rounds"] if self.logged else []
        declared = [] if process is None else [f"declared as {process.kind}"]
        return "; ".join([", ".join([counts, *log, *declared]), *self._doubts])

    @property
    def _doubts(self) -> tuple[str, ...]:
        """Why the constants of a declared process are only estimated, and how many rounds of a log are empty."""
        process, found = self.accountant.declared.process, ()
        if self._empty:
            found = (
                f"{self._empty} of {self.logged} rounds of the log have no participants: they change nothing and are "
                "not counted, except in FedAU's intervals and with amplification over several rounds",
            )
        if process is None or self.logged or (process.stationary and process.sums_to_one):
            return found
        try:
            process.require_unit_sum("a result in expectation over participation")
            why = "its moments change from round to round"
        except FedboundsError as error:
            why = str(error)
        drawn = self.accountant.rounds
        return (*found, f"constants of participation are estimated from {drawn} drawn rounds, because {why}")

    def intervals(self, low: int, high: int) -> tuple[int, ...]:
        """The intervals to try."""
        found: list[int] = []
        least = np.inf
        for P in self.accountant.declared.intervals:
            if not low <= P <= high or (found and CLOSEST * found[-1] > P and least > 0 and P > 10):
                continue
            try:
                facts = self.known("arbitrary-participation", P, {"gradient_divergence_sup": 1.0})
            except FedboundsError:  # no window of this length is complete
                continue
            divergence = float(np.ravel(facts.constants["window_divergence"].value)[0])
            if divergence < BETTER * least:
                found.append(P)
                least = divergence
        return tuple(found) or (low,)

    @property
    def averaged(self) -> bool:
        """Whether the constants are expected values over a random participation that was declared."""
        process = self.accountant.declared.process
        if process is None or not (process.stationary and process.sums_to_one):
            return False
        return not process.certain(self.accountant.rounds)

    def known(self, paper: str, interval: int, given: Mapping[str, float]) -> Presence:
        """The facts for the results of a paper."""
        account = self.accountant.accounts.get(paper)
        key = (paper, interval, given.get("gradient_divergence_sup"))
        if account is None:
            return Presence()
        if key not in self.seen:
            facts = account.facts(AccountQuestion(interval, max(1, self.accountant.rounds), given, ahead=True))
            constants = {name: c for name, c in facts.constants.items() if name != "cutoff_interval"}
            self.seen[key] = Presence(constants, facts.checked, facts.implied)
        return self.seen[key]


def _check_setting(setting: ProblemClass, who: Observed) -> None:
    """Refuse a log that fits none of the kinds of participation that the setting names."""
    found = {kind: _contradiction(kind, who) for kind in setting.said.get("participation", ())}
    if found and all(found.values()):
        why = "; ".join(f"{kind}: {reason}" for kind, reason in found.items())
        raise FedboundsError(
            f"the log is not of the participation that setting names: {why}; write arbitrary participation in setting"
        )


def _contradiction(kind: str, who: Observed) -> str:
    """Why a log does not fit a kind of participation ("" if it may)."""
    seen, accountant = who.accountant.presences, who.accountant
    if kind == "all" and (accountant.participations < accountant.rounds).any():
        return "some client is absent in some round"
    chance = seen.order_p_value() if kind in AFRESH else 1.0
    if chance < accountant.error:
        return f"rounds are not independent (runs test over the clients: p = {chance:.2g})"
    return ""


def _participation(table: object, choose: Mapping[str, Any]) -> Observed:
    """The table [participation]: a log, a process, or both."""
    if not isinstance(table, Mapping):
        raise FedboundsError(f"participation = {quote(table)} must be a table with a log, or with a kind of process")
    record, process = _record_and_process(table)
    clients = record.clients if record is not None else process.clients if process is not None else 0
    ends = choose.get("interval", (1, LONGEST))
    longest = int(max(ends)) if isinstance(ends, list | tuple) and all(isinstance(e, int | float) for e in ends) else 1
    accountant = ParticipationAccountant(clients, process, intervals=range(1, max(longest, 1) + 1))
    rows = np.zeros((0, clients)) if record is None else np.asarray(record.weights, dtype=float)
    weights = rows
    if record is None and process is not None:  # drawn to count participants, and to estimate moments that change
        weights = process.matrix(max(DRAWN, 4 * longest), np.random.default_rng(0))
    accountant.add_record(weights)
    found = accountant.conformity()
    if record is not None and process is not None and found.status not in ACCEPTED:
        raise FedboundsError(f"the log is not of the declared process: {found.why}")
    empty = int((~rows.any(axis=1)).sum())
    return Observed(accountant, len(rows), float((weights > 0).sum(axis=1).mean()), empty)


def _record_and_process(table: Mapping[str, Any]) -> tuple[Recorded | None, Process | None]:
    """The log of [participation] and the declared process: keys beside `log` are the log's if there is no `kind`."""
    spec = dict(table)
    log = spec.pop("log", None)
    if log is None and spec.get("kind") != Recorded.kind:
        return None, process_from_spec(spec)
    if log is None:
        log, spec = {name: value for name, value in spec.items() if name != "kind"}, {}
    if not isinstance(log, Mapping) or not {"file", "weights"} & log.keys():
        log = {"file" if isinstance(log, str | Path) else "weights": log, **({} if "kind" in spec else spec)}
        spec = spec if "kind" in spec else {}
    record = process_from_spec({"kind": Recorded.kind, **log})
    assert isinstance(record, Recorded)
    return record, process_from_spec(spec) if spec else None
