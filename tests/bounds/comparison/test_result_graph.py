"""The graph of results: its edges are those of proofs, theorem files and comparisons; its layers go one way."""

import json

import pytest

from fedbounds.bounds.audit.claim_set import paper_claims
from fedbounds.bounds.audit.proof_step_checker import Proof, StepOf
from fedbounds.bounds.comparison.improvements import improvements
from fedbounds.bounds.comparison.result_graph import (
    IMPROVES,
    USES,
    Edge,
    all_edges,
    edges_around,
    edges_of_registry,
    layers_of,
    results_shown,
)
from fedbounds.bounds.theory.registry import PAPERS, REFERENCES, load, paper
from fedbounds.bounds.theory.theorem_file import read_theorem_file
from fedbounds.cli.catalog import describe_uses
from tests.command_line import run


def used_by_proofs(name: str) -> set[tuple[str, str]]:
    """Each result that a proof of another one has among the premises of a step."""
    proofs: dict[str, Proof] = {
        claim.subject.proof.id: claim.subject.proof for claim in paper_claims(name) if isinstance(claim.subject, StepOf)
    }
    found = set()
    for proof in proofs.values():
        for premise in (p for step in proof.steps for p in step.premises if isinstance(p, str) and "/" in p):
            step_of = proofs.get(premise.rpartition("/")[0])
            used = step_of.result.key if step_of else premise.partition("[")[0]
            found |= {(proof.result.key, used)} if used != proof.result.key else set()
    return found


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_lists_what_its_proofs_use(name: str) -> None:
    keys = {result.key for result in paper(name).results}
    listed = {edge[:2] for edge in all_edges() if edge.result in keys and edge.relation == USES}
    assert listed == used_by_proofs(name), f"correct [uses] in the improvements.toml of {name}"
    assert {used for _, used in listed} <= keys


def test_theorem_files_and_comparisons_are_edges() -> None:
    edges = {edge[:2]: edge.relation for edge in all_edges()}
    assert len(edges) == len(all_edges())
    files = [read_theorem_file(r.file) for name in REFERENCES for r in paper(name).results]
    for one in files:
        assert all(edges[one.result.key, used] == USES for used in one.uses)
        assert all(edges[one.result.key, other] == IMPROVES for other in one.improves)
    said: dict[tuple[str, str], set[str]] = {}
    for one in improvements():
        said.setdefault((one.result, one.against), set()).add(one.relation)
    assert all(edges[pair] in relations for pair, relations in said.items() if pair[1])


def test_around_a_result_are_all_that_it_rests_on_and_all_that_rests_on_it() -> None:
    found = {edge[:2] for edge in edges_around("fedau/theorem-3")}
    assert ("fedau/theorem-3", "fedau/lemma-b.6.1") in found and ("fedau/corollary-4", "fedau/lemma-b.7.1") in found
    assert ("fedau/corollary-4", "fedau/theorem-2") not in found
    assert edges_around("fed-norm-sgda/theorem-2") == ()


def test_the_graph_of_the_registry_goes_through_lemmas() -> None:
    edges = {edge[:2] for edge in edges_of_registry()}
    assert ("fedau/corollary-4", "fedau/theorem-3") in edges  # through lemma B.7.1
    shown = {key for pair in edges for key in pair}
    assert shown <= results_shown()
    assert not [key for key in shown if load(key).kind == "lemma" and key.partition("/")[0] in PAPERS]


def test_layers_go_from_what_is_used_to_what_uses_it_also_around_a_circle() -> None:
    edges = [Edge("c", "b", USES), Edge("b", "a", USES), Edge("a", "c", USES), Edge("d", "c", USES)]
    layers = layers_of(edges)
    assert set(layers) == {*"abcd"} and layers["d"] > layers["c"]
    found = layers_of(edges_of_registry())
    assert all(found[edge.result] > found[edge.used] for edge in edges_of_registry())


def test_the_text_tells_what_a_proof_rests_on_from_what_it_improves_on() -> None:
    sections: dict[str, str] = {}
    for block in describe_uses("jhunjhunwala-2022/fedvarp").split("\n\n")[1:]:
        heading, _, lines = block.strip().partition("\n")
        sections[heading.partition(":")[0]] = lines
    assert "jhunjhunwala-2022/lemma-6" in sections["rests on"] and "fedavg" not in sections["rests on"]
    assert "jhunjhunwala-2022/fedavg " in sections["improves on, extends or matches"]
    assert "lemma" not in sections["improves on, extends or matches"]
    assert "jhunjhunwala-2022/fedavg " in describe_uses("jhunjhunwala-2022/lemma-6").partition("is used by")[2]
    document = json.loads(run("show", "jhunjhunwala-2022/fedvarp", "--graph", "--json")[1])
    relations = {row["uses"]: row["relation"] for row in document["uses"] if row["result"].endswith("/fedvarp")}
    assert relations == {"jhunjhunwala-2022/fedavg": "improves", "jhunjhunwala-2022/lemma-6": "uses"}
