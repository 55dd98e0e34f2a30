"""Participation processes as samplers: what a run looks like, specs, records, and bad input."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.constants import window_means
from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    Full,
    GroupMarkov,
    PeriodicGroups,
    Permutation,
    Recorded,
    WithoutReplacement,
    WithReplacement,
    process_from_spec,
)
from tests.bounds.participation.reference_constants import participation_norm, window_divergence


@st.composite
def processes(draw):
    """Any process of up to 12 clients but a record."""
    clients = draw(st.integers(1, 12))
    participants = draw(st.integers(1, clients))
    divisors = [g for g in range(1, clients + 1) if clients % g == 0]
    groups = draw(st.sampled_from(divisors))
    kind = draw(st.sampled_from(["full", "with", "without", "permutation", "periodic", "markov", "cyclic", "coins"]))
    match kind:
        case "full":
            return Full(clients)
        case "with":
            return WithReplacement(clients, participants)
        case "without":
            return WithoutReplacement(clients, participants)
        case "permutation":
            return Permutation(clients, participants, draw(st.booleans()))
        case "periodic":
            slot = draw(st.integers(1, 7))
            offset = draw(st.none() | st.integers(1, slot))
            sampling = draw(st.sampled_from(["permutation", "independent"]))
            return PeriodicGroups(clients, draw(st.integers(1, clients // groups)), slot, groups, offset, sampling)
        case "markov" if groups > 1:
            return GroupMarkov(clients, groups, draw(st.floats(0, 1)))
        case "coins":
            return Bernoulli(clients, draw(st.floats(0, 1)), draw(st.booleans()))
    return Cyclic(clients, groups, draw(st.booleans()))


@given(processes(), st.integers(0, 2**32), st.integers(1, 150))
def test_a_run_is_a_function_of_the_seed_and_its_matrix_holds_the_rounds_drawn(process, seed, rounds):
    q = process.matrix(rounds, np.random.default_rng(seed))
    drawn = list(islice(process.draw(np.random.default_rng(seed)), rounds))
    for row, (clients, weights) in zip(q, drawn, strict=True):
        assert clients.dtype == np.int64 and weights.dtype == np.float64
        assert (np.diff(clients) > 0).all() and (weights > 0).all()
        assert np.array_equal(np.flatnonzero(row), clients) and np.array_equal(row[clients], weights)
    shorter = process.matrix(max(1, rounds // 2), np.random.default_rng(seed))
    assert np.array_equal(shorter, q[: len(shorter)])


@given(processes(), st.integers(0, 2**32))
def test_weights_are_nonnegative_and_sum_to_one_where_bounded(process, seed):
    q = process.matrix(60, np.random.default_rng(seed))
    assert (q >= 0).all() and np.isfinite(q).all()
    if process.sums_to_one:
        assert q.sum(axis=1) == pytest.approx(np.ones(60), abs=1e-12)
        assert participation_norm(q) <= 1
    present = (q > 0).sum(axis=1)
    match process:
        case WithoutReplacement(participants=S):
            assert (present == S).all() and set(q[q > 0]) == {1 / S}
        case WithReplacement(participants=S) | Permutation(participants=S) | PeriodicGroups(participants=S):
            assert (present <= S).all() and q[q > 0].min() >= 1 / S - 1e-15
            assert (q * S).round(9) == pytest.approx((q * S).round())


@given(processes())
def test_a_spec_gives_the_process_back(process):
    spec = json.loads(json.dumps(process.spec()))
    assert process_from_spec(spec) == process


@given(processes(), st.integers(0, 6), st.integers(1, 9))
def test_covariances_are_symmetric_and_never_negative(process, t0, interval):
    covariance = process.window_covariance(t0, interval)
    assert covariance == pytest.approx(covariance.T, abs=1e-15)
    assert np.linalg.eigvalsh(covariance).min() >= -1e-13
    assert process.covariance(t0, t0 + 2) == pytest.approx(process.covariance(t0 + 2, t0).T, abs=1e-15)
    if process.sums_to_one:  # then the covariances of a client with all clients cancel
        assert covariance.sum(axis=0) == pytest.approx(np.zeros(process.clients), abs=1e-13)
        assert process.window_mean(t0, interval).sum() == pytest.approx(1)


# --- what the runs look like ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clients", "participants"), [(12, 3), (12, 1), (6, 6), (250, 10)])
def test_permutation_sampling_visits_every_client_once_per_cycle(clients, participants):
    rounds = clients // participants
    q = Permutation(clients, participants).matrix(4 * rounds, np.random.default_rng(0))
    visits = (q > 0).reshape(4, rounds, clients).sum(axis=1)
    assert (visits == 1).all()
    v = np.random.default_rng(1).standard_normal((clients, 3))
    assert window_divergence(q, v, rounds) == 0
    if rounds > 1:
        cycles = [q[rounds * k : rounds * (k + 1)] for k in range(4)]
        assert not np.array_equal(cycles[0], cycles[1])


def test_one_permutation_for_ever_repeats_itself():
    q = Permutation(12, 3, reshuffle=False).matrix(40, np.random.default_rng(0))
    assert np.array_equal(q[:36], q[4:])


@pytest.mark.parametrize("reshuffle", [True, False])
@pytest.mark.parametrize(("clients", "participants", "whole"), [(7, 3, 7), (6, 4, 3), (10, 4, 5)])
def test_where_s_does_not_divide_n_rounds_straddle_cycles_and_whole_cycles_stay_regularized(
    clients, participants, whole, reshuffle
):
    q = Permutation(clients, participants, reshuffle).matrix(40 * whole, np.random.default_rng(3))
    assert window_means(q, whole) == pytest.approx(np.full((40, clients), 1 / clients), abs=1e-15)
    twice = (q > 1.5 / participants).any()
    assert twice == reshuffle  # a client at the end of one cycle and the start of the next has weight 2/S


def test_periodic_groups_are_available_in_turn_and_only_the_first_slot_is_short():
    process = PeriodicGroups(12, 2, slot=10, groups=3)
    firsts = set()
    for seed in range(80):
        q = process.matrix(100, np.random.default_rng(seed))
        group = process.labels[q.argmax(axis=1)]
        assert (process.labels[np.nonzero(q)[1]].reshape(100, 2) == group[:, None]).all()
        changes = np.flatnonzero(np.diff(group)) + 1
        assert 1 <= changes[0] <= 10 and (np.diff(changes) == 10).all()
        assert np.array_equal(group[changes], (1 + np.arange(len(changes))) % 3) and group[0] == 0
        firsts.add(int(changes[0]))
    assert firsts == set(range(1, 11))


def test_a_fixed_offset_is_the_length_of_the_first_slot():
    process = PeriodicGroups(4, 1, slot=5, groups=(1, 0, 0, 1), offset=3)
    q = process.matrix(13, np.random.default_rng(0))
    assert [0 if row[[1, 2]].any() else 1 for row in q] == [0] * 3 + [1] * 5 + [0] * 5


def test_within_a_slot_the_clients_of_the_group_take_turns_from_a_new_permutation():
    process = PeriodicGroups(20, 2, slot=15, groups=2, offset=7)
    q = process.matrix(200, np.random.default_rng(0)) > 0
    for begin in [0, 7, 22, 37, 52]:
        members = q[begin : begin + 5].any(axis=0)
        assert members.sum() == 10 and (q[begin : begin + 5].sum(axis=0) <= 1).all()


def test_groups_may_be_given_client_by_client():
    assert PeriodicGroups(4, 1, 2, np.array([0, 1, 0, 1])).labels.tolist() == [0, 1, 0, 1]
    assert GroupMarkov(4, [0, 0, 0, 1], 0.5).sizes.tolist() == [3, 1]
    assert PeriodicGroups(10, 1, 2).labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_the_chain_never_stays_when_it_always_leaves_and_never_moves_when_it_never_does():
    always = GroupMarkov(6, 3, 1.0).matrix(50, np.random.default_rng(0)).argmax(axis=1)
    assert (np.diff(always) != 0).all() and set(always) == {0, 2, 4}
    never = GroupMarkov(6, 3, 0.0).matrix(50, np.random.default_rng(0))
    assert (never == never[0]).all() and (never[0] > 0).sum() == 2


def test_cyclic_participation_begins_at_the_first_client_or_at_a_random_phase():
    assert Cyclic(4, 2).matrix(3, np.random.default_rng(0)).tolist() == [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 1 + [
        [0.5, 0.5, 0, 0]
    ]
    process = Cyclic(4, random_phase=True)
    starts = {int(process.matrix(1, np.random.default_rng(seed)).argmax()) for seed in range(60)}
    assert starts == {0, 1, 2, 3}
    run = process.matrix(9, np.random.default_rng(1)).argmax(axis=1)
    assert (np.diff(run) % 4 == 1).all()


def test_a_round_in_which_nobody_takes_part_is_empty():
    clients, weights = next(Bernoulli(3, 0.0).draw(np.random.default_rng(0)))
    assert len(clients) == len(weights) == 0
    assert not Bernoulli(3, 0.0).mean(0).any() and Bernoulli(3, 0.0).empty_round_probability == 1
    q = Bernoulli(3, 0.4).matrix(500, np.random.default_rng(0))
    sums = q.sum(axis=1)
    assert set(sums.round(12)) == {0.0, 1.0}


def test_weights_of_coins_are_shared_or_one_nth_each():
    shared = Bernoulli(4, (1.0, 0.5, 0.5, 0.5)).matrix(200, np.random.default_rng(0))
    assert shared.sum(axis=1) == pytest.approx(np.ones(200)) and (shared[:, 0] > 0).all()
    assert {1 / 4, 1 / 3, 1 / 2, 1.0} == set(shared[:, 0])
    assert set(np.unique(Bernoulli(4, 0.5, normalize=False).matrix(200, np.random.default_rng(0)))) == {0, 1 / 4}


def test_sampling_of_many_clients_draws_different_ones():
    for process in [WithoutReplacement(5000, 40), WithoutReplacement(900, 40)]:
        for clients, _ in islice(process.draw(np.random.default_rng(0)), 100):
            assert len(set(clients)) == 40 and clients.min() >= 0 and clients.max() < process.clients


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_record_is_played_back_and_ends():
    q = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    record = Recorded(q)
    assert [clients.tolist() for clients, _ in record.draw(np.random.default_rng(0))] == [[0, 1], [2]]
    assert np.array_equal(record.matrix(2, np.random.default_rng(0)), q) and record.rounds == 2
    with pytest.raises(FedboundsError, match=r"rounds = 3 must be an integer in \[1, 2\]: the length of the record"):
        record.matrix(3, np.random.default_rng(0))
    with pytest.raises(FedboundsError, match=r"round = 2 must be an integer in \[0, 1\]"):
        record.mean(2)
    with pytest.raises(FedboundsError, match="last round of the window = 2"):
        record.window_mean(1, 2)
    with pytest.raises(FedboundsError, match="rounds = 4"):
        record.mean_window_divergence(np.eye(3), 1, 4)


def test_a_record_is_a_copy_that_cannot_be_changed():
    q = np.array([[0.5, 0.5], [1.0, 0.0]])
    record = Recorded(q)
    q[0] = 7
    assert record.mean(0).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(record.weights)[0] = 7


def test_a_record_of_who_was_there_becomes_equal_weights():
    record = Recorded([[1, 1, 0], [0, 0, 0], [0, 3, 1]], normalize=True)
    assert record.matrix(3, np.random.default_rng(0)).tolist() == [[0.5, 0.5, 0], [0, 0, 0], [0, 0.75, 0.25]]
    assert not record.sums_to_one
    again = process_from_spec(json.loads(json.dumps(record.spec())))
    assert np.array_equal(again.matrix(3, np.random.default_rng(0)), record.matrix(3, np.random.default_rng(0)))


@pytest.mark.parametrize(
    "text",
    ["0.5,0.5\n1,0\n", "alice,bob\n0.5,0.5\n\n1,0\n", "\ufeffalice,bob\r\n0.5,5e-1\r\n1,0\r\n", "0.5,0.5\n1,0"],
)
def test_records_are_read_from_csv_files(tmp_path, text):
    file = tmp_path / "record.csv"
    file.write_bytes(text.encode())
    expected = [[0.5, 0.5], [1.0, 0.0]]
    assert Recorded.read(file).matrix(2, np.random.default_rng(0)).tolist() == expected
    from_spec = process_from_spec({"kind": "recorded", "file": str(file), "normalize": True})
    assert from_spec.matrix(2, np.random.default_rng(0)).tolist() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no rounds"),
        (b"alice,bob\n", "holds no rounds"),
        (b"a,b\n0.5,0.5\n1\n", "line 3: 1 cells, the first line has 2"),
        (b"a,b,c\n0.5,0.5\n", "line 2: 2 cells, the first line has 3"),
        (b"0.5,0.5\n0.5,half\n", "line 2, column 2: 'half' is not a number"),
        (b"0.5,\n", "line 1, column 2: '' is not a number"),
        (b"0.5,0_5\n", "line 1, column 2: '0_5' is not a number"),
        (b"0.5,nan\n", r"weights\[0, 1\] = nan is not finite"),
        (b"1.5,-0.5\n", r"weights\[0, 1\] = -0.5 is negative"),
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
        (b"\x00\x01,\x02\n", "holds no rounds|not a CSV|not a number"),
    ],
)
def test_a_damaged_csv_file_is_reported_with_its_line(tmp_path, content, message):
    file = tmp_path / "record.csv"
    file.write_bytes(content)
    with pytest.raises(FedboundsError, match=message) as error:
        Recorded.read(file)
    assert "record.csv" in str(error.value) and "\n" not in str(error.value)


def test_a_missing_csv_file_is_named(tmp_path):
    with pytest.raises(FedboundsError, match=r"cannot read .*nowhere.csv: No such file"):
        Recorded.read(tmp_path / "nowhere.csv")
    with pytest.raises(FedboundsError, match="Is a directory"):
        Recorded.read(tmp_path)
    for path in (5, None, True, "a\0b"):
        with pytest.raises(FedboundsError, match=r"file|cannot read"):
            process_from_spec({"kind": "recorded", "file": path})


# --- bad input --------------------------------------------------------------------------------------------------------

BAD = [
    ({"kind": "full", "clients": 0}, "clients = 0 must be an integer >= 1"),
    ({"kind": "full", "clients": 2.5}, "clients = 2.5"),
    ({"kind": "full", "clients": "ten"}, "clients = 'ten'"),
    ({"kind": "full", "clients": float("nan")}, "clients = nan"),
    ({"kind": "full", "clients": float("inf")}, "clients = inf"),
    ({"kind": "with-replacement", "clients": 5, "participants": 6}, r"participants = 6 .* \[1, 5\]: at most all"),
    ({"kind": "without-replacement", "clients": 5, "participants": 6}, r"participants = 6 .* \[1, 5\]: at most all"),
    ({"kind": "without-replacement", "clients": 5, "participants": 0}, "participants = 0"),
    ({"kind": "permutation", "clients": 5, "participants": 6}, "participants = 6"),
    ({"kind": "permutation", "clients": 5, "participants": 2, "reshuffle": "yes"}, "reshuffle = 'yes' must be true"),
    ({"kind": "periodic-groups", "clients": 10, "participants": 3, "slot": 5}, r"participants = 3 .* smallest group"),
    ({"kind": "periodic-groups", "clients": 10, "participants": 1, "slot": 0}, "slot = 0"),
    ({"kind": "periodic-groups", "clients": 12, "participants": 1, "slot": 5}, "groups = 5 must divide clients = 12"),
    ({"kind": "periodic-groups", "clients": 10, "participants": 1, "slot": 5, "offset": 6}, r"offset = 6 .* \[1, 5\]"),
    ({"kind": "periodic-groups", "clients": 10, "participants": 1, "slot": 5, "offset": 0}, "offset = 0"),
    (
        {"kind": "periodic-groups", "clients": 10, "participants": 1, "slot": 5, "sampling": "permute"},
        "unknown sampling 'permute'; did you mean permutation",
    ),
    ({"kind": "group-markov", "clients": 3, "groups": [0, 1], "leave": 0.5}, "groups has 2 entries; .* one per client"),
    ({"kind": "group-markov", "clients": 3, "groups": [0, 2, 2], "leave": 0.5}, "no client in group 1"),
    ({"kind": "group-markov", "clients": 3, "groups": [0, 1, -1], "leave": 0.5}, r"groups\[2\] = -1"),
    ({"kind": "group-markov", "clients": 2, "groups": [0, [1]], "leave": 0.5}, r"groups\[1\] = \[1\]"),
    ({"kind": "group-markov", "clients": 4, "groups": 1, "leave": 0.5}, "groups = 1 must be an integer >= 2"),
    ({"kind": "group-markov", "clients": 4, "groups": "two", "leave": 0.5}, "groups = 'two'"),
    ({"kind": "group-markov", "clients": 4, "groups": 2, "leave": 1.5}, r"leave = 1.5 must be a number in \[0, 1\]"),
    ({"kind": "group-markov", "clients": 4, "groups": 2, "leave": float("nan")}, "leave = nan"),
    ({"kind": "cyclic", "clients": 4, "groups": 3}, "groups = 3 must divide clients = 4"),
    ({"kind": "cyclic", "clients": 4, "groups": 5}, r"groups = 5 must be an integer in \[1, 4\]"),
    ({"kind": "bernoulli", "clients": 3, "probability": 1.1}, "probability = 1.1"),
    ({"kind": "bernoulli", "clients": 3, "probability": [0.1, 0.2]}, "probability has 2 entries; expected one per"),
    ({"kind": "bernoulli", "clients": 2, "probability": [0.1, float("nan")]}, r"probability\[1\] = nan"),
    ({"kind": "bernoulli", "clients": 2, "probability": "half"}, "probability = 'half'"),
    ({"kind": "recorded", "weights": [[0.5, -0.5]]}, r"weights\[0, 1\] = -0.5 is negative"),
    ({"kind": "recorded", "weights": [[0.5, 0.5], [1]]}, "weights must be numbers in an array of shape"),
    ({"kind": "recorded", "weights": [0.5, 0.5]}, r"weights has shape \(2,\); expected \(rounds, clients\)"),
    ({"kind": "recorded", "weights": "import os"}, "weights must be numbers"),
    ({"kind": "recorded", "weights": [[1.0]], "normalize": 1}, "normalize = 1 must be true or false"),
    (
        {"kind": "recorded", "weights": [[1.0]], "file": "q.csv"},
        "give weights or file, not both",
    ),
    ({"kind": "recorded"}, "recorded participation needs weights"),
    ({"kind": "permutation", "clients": 5}, "participation 'permutation' needs participants"),
    ({"kind": "periodic-groups"}, "needs clients, participants, slot"),
    ({"kind": "permutation", "clients": 5, "participant": 2}, "'participant'; did you mean participants"),
    ({"kind": "full", "clients": 5, "file": "q.csv"}, "unknown key of participation 'full': 'file'"),
    ({"kind": "periodic", "clients": 5}, "unknown participation 'periodic'; did you mean periodic-groups"),
    ({"kind": ["full"]}, "unknown participation"),
    ({"clients": 5}, "participation needs a kind: one of full, with-replacement"),
    ("full", "participation = 'full' must be a table"),
    (None, "participation = None must be a table"),
]


@pytest.mark.parametrize(("spec", "message"), BAD, ids=[str(spec)[:60] for spec, _ in BAD])
def test_a_bad_spec_is_reported_in_one_line(spec, message):
    with pytest.raises(FedboundsError, match=message) as error:
        process_from_spec(spec)
    assert len(str(error.value).splitlines()) == 1


values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 30), st.floats(), st.text(max_size=5), st.lists(st.integers(-1, 3))
)


@given(
    st.sampled_from(["full", "permutation", "periodic-groups", "group-markov", "cyclic", "bernoulli", "recorded"]),
    st.dictionaries(
        st.sampled_from(["clients", "participants", "slot", "groups", "leave", "probability", "weights", "offset"]),
        values,
    ),
)
def test_any_spec_is_a_process_or_one_line(kind, arguments):
    try:
        process = process_from_spec({"kind": kind} | arguments)
    except FedboundsError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert process.matrix(1, np.random.default_rng(0)).shape == (1, process.clients)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "ten"])
def test_a_matrix_has_at_least_one_round(rounds):
    with pytest.raises(FedboundsError, match="rounds = "):
        Full(3).matrix(rounds, np.random.default_rng(0))


@pytest.mark.parametrize(("interval", "rounds"), [(0, 5), (6, 5), (1, 0), (1.5, 5)])
def test_a_window_divergence_needs_a_complete_window(interval, rounds):
    with pytest.raises(FedboundsError, match=r"interval|rounds"):
        Full(3).mean_window_divergence(np.eye(3), interval, rounds)


def test_offsets_must_be_one_per_client():
    with pytest.raises(FedboundsError, match="offsets v are of 2 clients, the weights of 3"):
        WithoutReplacement(3, 1).mean_window_divergence(np.eye(2), 1, 5)
