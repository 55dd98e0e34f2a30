"""fedbounds audit and fedbounds refute, as they are called."""

import json

import pytest

import fedbounds
from fedbounds.bounds.audit import audit_rows, ledger
from fedbounds.bounds.audit import audit_rows as rows
from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet
from fedbounds.bounds.audit.errata import paper_errata
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.theory.registry import REFERENCES, paper
from fedbounds.cli import audit as audit_command

PAPER = "arbitrary-participation"
OUTCOMES = {"a": "proved", "b": "refuted", "c": "unknown", "d": "survived"}
NEVER = {"seconds", "ratio", "model"}


@pytest.fixture
def audited(monkeypatch, tmp_path):
    """Four claims and a slip of wording before one checker, with a ledger and a cache; returns the verified ids."""
    tried = []

    def verify(claim, _):
        tried.append(claim.id)
        return Verdict(OUTCOMES[claim.id[-1]], "checker", "method", f"evidence {claim.id[-1]}", ("axiom",), ("flag",))

    def made(name, only=None):
        if name != PAPER:
            raise AssertionError(f"{name} was not asked for")
        claims = [Claim(f"{name}/claim/{symbol}", "result", f"text {symbol}", None, symbol) for symbol in OUTCOMES]
        claims.append(Claim(f"{name}/wording/w", "wording", "says; meant", None, "w"))
        return ClaimSet(name, {c.id: c for c in claims}, (Checker("checker", lambda *_: True, verify),))

    monkeypatch.setattr(ClaimSet, "of", staticmethod(made))
    monkeypatch.setattr(ledger, "ledger_path", lambda paper, name="json": tmp_path / f"{paper}.{name}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tried


def run(capsys, *arguments):
    code = fedbounds.main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_without_a_ledger_the_audit_says_so_and_succeeds(audited, capsys):
    code, out, err = run(capsys, "audit", "--paper", PAPER)
    assert (code, err) == (0, "") and f"{PAPER}: no ledger yet" in out
    assert "refuted   arbitrary-participation/claim/b  checker, method: evidence b  rests on axiom  [flag]" in out
    assert f"{PAPER}: 1 proved, 1 survived, 0 argued, 1 refuted, 1 unknown" in out


def test_without_a_paper_the_reference_theorems_are_counted_from_their_ledger(audited, capsys, monkeypatch):
    monkeypatch.setattr(audit_command, "papers", lambda: [paper(PAPER)])
    monkeypatch.setattr(audit_command, "reference_statuses", lambda: {"survived": 2, "order only": 3})
    said = "references, from their ledger: 2 survived, 3 order only; to verify them: fedbounds audit --paper references"
    assert said in run(capsys, "audit")[1] and said not in run(capsys, "audit", "--paper", PAPER)[1]
    assert json.loads(run(capsys, "audit", "--json")[1])["references"] == {"survived": 2, "order only": 3}
    assert "references" not in json.loads(run(capsys, "audit", f"{PAPER}/claim/a", "--json")[1])
    assert {claim.rpartition("/")[0] for claim in audited} == {f"{PAPER}/claim"}  # nothing else is verified


def test_all_reference_theorems_are_one_in_the_counts(capsys, monkeypatch):
    claims = [Claim(f"{name}/x[explicit]", "result", "", None, "") for name in REFERENCES]
    found = [rows.ClaimRow.of(claim, Verdict("survived", "instances", "", "")) for claim in claims]
    monkeypatch.setattr(audit_command, "audit_rows", lambda name, *_: [row for row in found if row.paper == name])
    monkeypatch.setattr(audit_command, "compare_with_ledgers", lambda *_: ([], []))
    code, out, _ = run(capsys, "audit", "--paper", "references")
    assert code == 0 and f"\nreferences: 0 proved, {len(found)} survived, 0 argued" in out
    assert out.count("survived  ") == len(found) and "condition" not in out


def test_a_ledger_is_written_and_agrees_with_the_next_audit(audited, capsys, tmp_path):
    assert run(capsys, "audit", "--paper", PAPER, "--write")[0] == 0
    document = json.loads((tmp_path / f"{PAPER}.json").read_text())
    assert set(document["claims"]) == {f"{PAPER}/claim/{symbol}" for symbol in OUTCOMES}
    assert not NEVER & set(document["claims"][f"{PAPER}/claim/a"])
    code, out, _ = run(capsys, "audit", "--paper", PAPER)
    assert code == 0 and "DIFFERS" not in out and "no ledger" not in out


def test_a_verdict_that_differs_from_the_ledger_fails_with_one_line_each(audited, capsys, monkeypatch):
    run(capsys, "audit", "--paper", PAPER, "--write")
    monkeypatch.setitem(OUTCOMES, "a", "unknown")
    code, out, _ = run(capsys, "audit", "--paper", PAPER, "--no-cache")
    differs = [line for line in out.splitlines() if line.startswith("DIFFERS")]
    assert code == 1
    assert differs == [f"DIFFERS  {PAPER}/claim/a: verdict is 'unknown', the ledger says 'proved'"]
    code, out, _ = run(capsys, "audit", "--paper", PAPER, "--no-cache", "--json")
    assert code == 1 and json.loads(out)["differences"] == [differs[0].removeprefix("DIFFERS  ")]


def test_proved_steps_are_counted_and_shown_only_where_they_are_asked_for(audited, capsys, monkeypatch):
    outcomes = {"step": "proved", "units": "unknown", "limit": "proved", "result": "proved"}
    claims = {f"{PAPER}/claim/{kind}": Claim(f"{PAPER}/claim/{kind}", kind, "text", None, kind) for kind in outcomes}
    checker = Checker(
        "checker", lambda *_: True, lambda claim, _: Verdict(outcomes[claim.kind], "checker", "m", "e", (), ())
    )
    monkeypatch.setattr(ClaimSet, "of", staticmethod(lambda name, only=None: ClaimSet(name, claims, (checker,))))
    _, out, _ = run(capsys, "audit", "--paper", PAPER)
    assert [f"claim/{kind}" in out for kind in outcomes] == [False, True, False, True]
    assert "2 proved steps, units and limits are counted but not shown: --all shows them" in out
    for more in (("--paper", PAPER, "--all"), (f"{PAPER}/claim",), ("--paper", PAPER, "--verdict", "proved")):
        _, out, _ = run(capsys, "audit", *more)
        assert "claim/step" in out and "not shown" not in out


def test_a_key_narrows_both_the_table_and_the_comparison(audited, capsys, monkeypatch):
    run(capsys, "audit", "--paper", PAPER, "--write")
    monkeypatch.setitem(OUTCOMES, "a", "unknown")
    code, out, _ = run(capsys, "audit", f"{PAPER}/claim/b", "--no-cache")
    assert code == 0 and "claim/b" in out and "claim/a" not in out
    assert audited[-1] == f"{PAPER}/claim/b"


def test_a_claim_that_is_gone_is_a_difference(audited, capsys, tmp_path):
    run(capsys, "audit", "--paper", PAPER, "--write")
    path = tmp_path / f"{PAPER}.json"
    document = json.loads(path.read_text())
    document["claims"][f"{PAPER}/claim/z"] = document["claims"][f"{PAPER}/claim/a"]
    path.write_text(json.dumps(document))
    code, out, _ = run(capsys, "audit", "--paper", PAPER)
    assert code == 1 and f"DIFFERS  {PAPER}/claim/z: in the ledger, but no longer claimed" in out


def test_one_json_document_with_the_agreed_keys(audited, capsys):
    code, out, _ = run(capsys, "audit", "--paper", PAPER, "--json")
    document = json.loads(out)
    assert code == 0 and document["schema"] == "fedbounds.audit/1" and document["version"] == fedbounds.__version__
    first, *_, wording = document["claims"]
    assert {"id", "paper", "text", "kind", "verdict", "method", "evidence", "axioms"} <= set(first)
    assert first["verdict"] == "proved" and first["axioms"] == ["axiom"]
    assert wording["kind"] == "wording" and wording["verdict"] is None
    assert document["counts"][PAPER] == {
        "result": {"proved": 1, "refuted": 1, "unknown": 1, "survived": 1},
        "wording": {"no verdict": 1},
    }


def test_a_verdict_can_be_picked_out(audited, capsys):
    _, out, _ = run(capsys, "audit", "--paper", PAPER, "--verdict", "refuted", "--json")
    assert [claim["id"] for claim in json.loads(out)["claims"]] == [f"{PAPER}/claim/b"]


def test_unchanged_sources_are_not_tried_again(audited, capsys, monkeypatch):
    first = run(capsys, "audit", "--paper", PAPER)
    assert len(audited) == 4
    monkeypatch.setattr(ClaimSet, "of", staticmethod(lambda name: pytest.fail("the claim_set was built again")))
    assert run(capsys, "audit", "--paper", PAPER) == first
    assert run(capsys, "audit", f"{PAPER}/claim/c")[0] == 0
    assert len(audited) == 4


def test_no_cache_and_a_changed_source_try_again(audited, capsys, monkeypatch):
    run(capsys, "audit", "--paper", PAPER)
    run(capsys, "audit", "--paper", PAPER, "--no-cache")
    assert len(audited) == 8
    monkeypatch.setattr(rows, "content_key", lambda: "another")
    run(capsys, "audit", "--paper", PAPER)
    assert len(audited) == 12


def test_a_narrow_audit_is_completed_by_the_next(audited, capsys):
    run(capsys, "audit", f"{PAPER}/claim/b")
    assert audited == [f"{PAPER}/claim/b"]
    _, out, _ = run(capsys, "audit", "--paper", PAPER)
    assert len(audited) == 4 and sorted(audited) == sorted(set(audited)) and "claim/d" in out


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 1}', "null"])
def test_a_damaged_cache_is_ignored(audited, capsys, damage):
    first = run(capsys, "audit", "--paper", PAPER)
    audit_rows.cache_file(PAPER).write_text(damage)
    assert run(capsys, "audit", "--paper", PAPER) == first
    document = json.loads(audit_rows.cache_file(PAPER).read_text())
    for spoiled in ({"rows": {"x": {}}}, {"rows": []}, {"ids": None}):
        audit_rows.cache_file(PAPER).write_text(json.dumps({**document, **spoiled}))
        assert run(capsys, "audit", "--paper", PAPER) == first


def test_the_key_of_the_cache_covers_every_source_file(monkeypatch, tmp_path):
    names = [name for name, _ in audit_rows.source_files()]
    for wanted in ("audit/counterexample_checker.py", "papers/arbitrary_participation/errata.py"):
        assert f"fedbounds.bounds/{wanted}" in names
    assert any(name.startswith("fedbounds.empirical/") for name in names) and not any(
        "ledger" in n for n in names if ".json" in n
    )
    here = tmp_path / "a.py"
    here.write_text("1")
    monkeypatch.setattr(audit_rows, "source_files", lambda: iter([("a", here)]))
    before = audit_rows.content_key()
    assert audit_rows.content_key() == before
    here.write_text("2")
    assert audit_rows.content_key() != before
    before = audit_rows.content_key()
    monkeypatch.setattr(audit_rows.metadata, "entry_points", lambda group: ())
    assert audit_rows.content_key() != before  # a checker that is not installed finds nothing


def test_checkers_that_contradict_each_other_fail_the_audit(audited, capsys, monkeypatch):
    def both(name):
        claim = Claim(f"{name}/claim/a", "result", "text", None, "a")
        yes, no = (
            Checker(word, lambda *_: True, lambda c, d, o=outcome: Verdict(o, "x", "", ""))
            for word, outcome in (("yes", "proved"), ("no", "refuted"))
        )
        return ClaimSet(name, {claim.id: claim}, (yes, no))

    monkeypatch.setattr(ClaimSet, "of", staticmethod(both))
    code, out, err = run(capsys, "audit", "--paper", PAPER)
    assert (code, out) == (1, "") and "contradict" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["audit", "--paper", "arbitrary"], "arbitrary-participation"),
        (["audit", f"{PAPER}/claim/q"], "claim"),
        (["audit", "no-paper/x"], "no-paper"),
        (["audit", f"{PAPER}/claim/a", "--write"], "--write"),
        (["audit", f"{PAPER}/claim/a", "--paper", "fedau"], "fedau"),
        (["refute", "suprema-at-different-round"], "suprema-at-different-rounds"),
        (["refute", f"{PAPER}/erratum/nothing-of-the-sort"], "refutation"),
        (["audit", "--verdict", "wrong"], "--verdict"),
    ],
)
def test_bad_input_is_one_line_on_standard_error(audited, capsys, arguments, named):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "") and err.startswith("fedbounds: ") and err.count("\n") == 1 and named in err


@pytest.mark.parametrize(
    "name",
    [
        "suprema-at-different-rounds",
        f"{PAPER}/erratum/suprema-at-different-rounds",
        f"{PAPER}/repair/suprema-at-different-rounds",
        f"{PAPER}/proposition-4.1[printed]",
        "proposition-4.1[printed]",
        f"{PAPER}/corollary-4.8[explicit]",
    ],
)
def test_an_erratum_is_found_by_every_name_it_has(capsys, name):
    code, out, _ = run(capsys, "refute", name)
    assert code == 0 and out.startswith(f"{PAPER}/erratum/suprema-at-different-rounds")


def test_refute_prints_hypotheses_lines_both_sides_and_what_holds_instead(capsys):
    code, out, _ = run(capsys, "refute", "suprema-at-different-rounds")
    assert code == 0
    order = [
        "bounded-divergence: max_n |v_n|^2 <= d^2: 1 <= 1, holds",
        "left-hand side of (5) in round 0 = 1",
        "d^2 = 1 < least beta^2 + nu^2 = 2",
        "round 0 alone: 1 >= 1",
        "Verdict: refuted",
        "Instead: beta <= d and nu <= d separately",
        f"{PAPER}/proposition-4.1[repaired]",
    ]
    places = [out.index(line) for line in order]
    assert places == sorted(places)


@pytest.mark.parametrize("erratum", paper_errata(PAPER), ids=lambda e: e.id)
def test_every_refutation_is_one_json_document(capsys, erratum):
    code, out, _ = run(capsys, "refute", erratum.id, "--json")
    document = json.loads(out)
    assert code == 0 and document["schema"] == "fedbounds.refute/1" and document["verdict"] == "refuted"
    assert all(check["holds"] for check in document["hypotheses"])
    assert document["true"]["decimal"] > document["claimed"]["decimal"]
    assert document["repair"][0]["id"] == f"{PAPER}/repair/{erratum.id}"


def test_a_refutation_that_fails_exits_with_one(capsys, monkeypatch):
    from dataclasses import replace

    from fedbounds.bounds.papers.arbitrary_participation import errata

    sound = errata.ERRATA[0]
    swapped = replace(sound, replay=lambda: replace(sound.replay(), claimed=2, true=1))
    monkeypatch.setattr(errata, "ERRATA", (swapped, *errata.ERRATA[1:]))
    code, out, _ = run(capsys, "refute", sound.id)
    assert code == 1 and "Verdict: unknown (the counterexample does not exceed the claim" in out
