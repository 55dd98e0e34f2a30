# pyright: reportArgumentType=false, reportOptionalMemberAccess=false
# settings are dictionaries of numbers and vectors
"""What holds in every paper of the walking skeleton: units, scaling, order of the forms, monotonicity, broadcasting."""

import math
import re
from functools import partial

import numpy as np
import pytest

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.dimensions import dimension_of
from fedbounds.bounds.theory.registry import load, paper, papers

evaluated = partial(evaluate, strict=False)

ROOMS = ("fedau", "fedmrn", "tdcd", "fed-norm-sgda")
EVERY = [result for room in ROOMS for result in paper(room).results]
KEYS = [result.key for result in EVERY]


def tdcd(rng):
    L, Lmax, Delta, S = np.exp(rng.normal(size=4))
    Q, R = int(rng.integers(1, 20)), int(rng.integers(1, 1000))
    c = dict(L=L, Lmax=Lmax, Delta=Delta, Deltainf=Delta * rng.uniform(1, 3), S=S, SK=S * rng.uniform(0.1, 1), Q=Q, R=R)
    return c | dict(eta=rng.uniform(0.05, 1) / (8 * Q * max(L, Lmax)))


def tdcd_remark_5(rng):
    c = tdcd(rng)
    largest = max(c["L"], c["Lmax"])
    R = int(64 * largest**2 * max(1, c["Deltainf"] / (c["L"] * c["S"])) * rng.uniform(1, 9)) + 1
    return c | dict(R=R, c=rng.uniform(0.2, 1) * math.sqrt(R) / (8 * largest))


def tdcd_in_time(rng):
    c = {k: v for k, v in tdcd(rng).items() if k != "R"} | dict(tcomm=rng.uniform(0, 100), tcomp=rng.uniform(0.1, 10))
    return c | dict(W=(3 * c["tcomm"] + c["Q"] * c["tcomp"]) * rng.uniform(1, 500))  # from which R follows


def tdcd_round(rng):
    sigmaj, gradsq, G0 = np.exp(rng.normal(size=3))
    return tdcd(rng) | dict(sigmaj=sigmaj, gradsq=gradsq, G0=G0)


def fedmrn(rng):
    mu, sigma, G, q, Gamma, Delta1, F = np.exp(rng.normal(size=7))
    N, T = int(rng.integers(2, 30)), int(rng.integers(1, 5000))
    L = mu * rng.uniform(1, 30)
    counts = dict(N=N, K=int(rng.integers(1, N + 1)), S=int(rng.integers(1, 20)), T=T, d=int(rng.integers(1, 20)))
    eta = 1 / (L * math.sqrt(T))
    a = eta * counts["S"] * G * rng.uniform(1, 3)
    return counts | dict(L=L, mu=mu, sigma=sigma, G=G, q=q, Gamma=Gamma, Delta1=Delta1, F=F, eta=eta, a=a)


def fedmrn_iteration(rng):
    Deltat, V, Dt, M, gradsq, meansq = np.exp(rng.normal(size=6))
    c = fedmrn(rng)
    open_ = dict(Deltat=Deltat, V=V, Dt=Dt, M=M, gradsq=gradsq, meansq=meansq)
    return c | open_ | dict(etat=rng.uniform(0.05, 1) / (4 * c["L"]))


def fedau(rng):
    L, F, sigma, delta, G = np.exp(rng.normal(size=5))
    I, N, T = int(rng.integers(1, 20)), int(rng.integers(1, 9)), int(rng.integers(2, 3000))
    p = rng.uniform(0.02, 1, N)
    Q = np.mean(1 / p) * rng.uniform(1, 10)  # no weights that are right on average have less
    gamma = rng.uniform(0.05, 1) / (4 * math.sqrt(15) * L * I)
    eta = rng.uniform(0.05, 1) * min(1 / (2 * L * I), N / (27 * L * I * Q)) / gamma
    return dict(
        L=L, F=F, I=I, T=T, gamma=gamma, eta=eta, sigma=sigma, delta=delta, G=G, Q=Q, W=rng.uniform(0, 0.01),
        Wmax=1 / 81, p=p,
    )  # fmt: skip


def fedau_weights(rng):
    return dict(p=rng.uniform(0.02, 1, rng.integers(1, 9)), K=int(rng.integers(1, 200)), T=int(rng.integers(2, 3000)))


def fedau_constant(rng):
    L, H, sigma, delta = np.exp(rng.normal(size=4))
    I, N = int(rng.integers(1, 20)), int(rng.integers(1, 9))
    p, omega = rng.uniform(0.02, 1, N), np.exp(rng.normal(size=N))
    P = np.sum(p * omega)
    Q = np.mean(p * (omega * N / P) ** 2)
    return dict(L=L, H=H, I=I, sigma=sigma, delta=delta, p=p, omega=omega), N / P, min(1, N / (13.6 * Q)) / (L * I)


def fedau_theorem_1(rng):
    c, scale, cap = fedau_constant(rng)
    T = int(rng.integers(10, 3000))
    steps = dict(cgamma=rng.uniform(0, 1) * T**0.5 / (30 * c["L"] * c["I"]))
    return c | steps | dict(T=T, cboth=rng.uniform(0.1, 0.5) * cap * scale * T**0.5)


def fedau_theorem_b_4_1(rng):
    c, scale, cap = fedau_constant(rng)
    gamma = rng.uniform(0.05, 1) / (30 * c["L"] * c["I"])
    return c | dict(T=int(rng.integers(1, 3000)), gamma=gamma, eta=rng.uniform(0.05, 0.5) * cap * scale / gamma)


def fedau_round(rng):
    c, _, _ = fedau_constant(rng)
    gamma = rng.uniform(0.05, 1) / (30 * c["L"] * c["I"])
    c |= dict(gamma=gamma, eta=rng.uniform(0, 0.5) / (c["L"] * c["I"] * gamma), gradsq=np.exp(rng.normal()))
    return c | dict(varphi=rng.dirichlet(np.ones(len(c["p"]))))


def fedau_interval(rng):
    return dict(rate=rng.uniform(0.02, 1), K=int(rng.integers(1, 60)))


def fedau_corollary(rng):
    L, F, sigma, delta, G = np.exp(rng.normal(size=5))
    c = dict(L=L, F=F, sigma=sigma, delta=delta, G=G, I=int(rng.integers(1, 20)), T=int(rng.integers(20, 2000)))
    return c | dict(p=rng.uniform(0.02, 1, rng.integers(1, 5)))


def fedau_nearly_all_clients(rng):
    return fedau_corollary(rng) | dict(p=rng.uniform(0.985, 1, 3))  # then K = 1


def fedau_known(rng):
    N = int(rng.integers(1, 300))
    return fedau_corollary(rng) | dict(N=N, S=int(rng.integers(1, N + 1)), p=np.ones(N))


def fed_norm_sgda(rng):
    n = int(rng.integers(1, 9))
    Lf, sigmaL, sigmaG, Delta, delta0, taueff = np.exp(rng.normal(size=6))
    kappa, betaG, betaL, P = rng.uniform(1, 9), rng.uniform(1, 2), rng.uniform(0, 1), int(rng.integers(1, n + 1))
    largest = 1 / (130 * kappa * Lf * betaG**2 * n / P * (1 + betaL**2))  # inside (a), (b) and (g) of every form
    gammay = rng.uniform(0.1, 1) * largest / taueff
    local = 1 / (64 * kappa * Lf * betaG * math.sqrt(2 * 30 * (6 + betaL**2)))
    return dict(
        Lf=Lf, mu=Lf / kappa, sigmaL=sigmaL, betaL=betaL, sigmaG=sigmaG, betaG=betaG, P=P, T=int(rng.integers(1, 5000)),
        tau=rng.integers(1, 7, n), w=rng.dirichlet(np.ones(n)), taueff=taueff, Delta=Delta, delta0=delta0,
        gammay=gammay, gammax=rng.uniform(0.1, 1) * gammay / (156 * kappa**2),
        etax=rng.uniform(0, 1) * local, etay=rng.uniform(0, 1) * local,
    )  # fmt: skip


def fed_norm_sgda_at_its_steps(rng):
    c = fed_norm_sgda(rng) | dict(taueff=1.5, T=int(rng.integers(1, 50) * 10**10))
    return {name: value for name, value in c.items() if name not in ("gammax", "gammay", "etax", "etay")}


def fed_norm_sgda_concave(rng):
    c = fed_norm_sgda(rng)
    Gx, R, Deltabar = np.exp(rng.normal(size=3))
    S = int(rng.integers(1, 30))
    kept = {name: value for name, value in c.items() if name not in ("mu", "Delta", "delta0")}
    return kept | dict(Gx=Gx, R=R, Deltabar=Deltabar, S=S, T=S * c["T"], gammax=np.exp(rng.normal()))


def fed_norm_sgda_theorem_2(rng):
    c = fed_norm_sgda_concave(rng) | dict(T=int(rng.integers(1, 50) * 10**4))
    return {name: value for name, value in c.items() if name not in ("gammax", "gammay", "etax", "etay", "S")}


def fed_norm_sgda_rounds(rng):
    c = fed_norm_sgda_at_its_steps(rng) | dict(eps=np.exp(rng.normal()))
    return {name: value for name, value in c.items() if name != "T"}


def fed_norm_sgda_rounds_concave(rng):
    c = fed_norm_sgda_theorem_2(rng) | dict(eps=np.exp(rng.normal()))
    return {name: value for name, value in c.items() if name != "T"}


def fed_norm_sgda_curvature(rng):
    Lf, gradsq, gap = np.exp(rng.normal(size=3))
    return dict(Lf=Lf, kappa=rng.uniform(1, 9), gradsq=gradsq, gap=gap, w=rng.dirichlet(np.ones(rng.integers(1, 9))))


def fed_norm_sgda_fact(rng):
    mu, usq, vsq, young, distsq, excess, bregman = np.exp(rng.normal(size=7))
    n = int(rng.integers(1, 9))
    vectors = dict(w=rng.dirichlet(np.ones(n)), squares=np.exp(rng.normal(size=n)), fvalues=rng.normal(size=n))
    c = dict(Lf=mu * rng.uniform(1, 30), mu=mu, usq=usq, vsq=vsq, young=young, distsq=distsq, excess=excess, n=n)
    return c | vectors | dict(bregman=bregman, slope=np.exp(rng.normal()) + mu / 2 * distsq)


def of_fact(*names):
    return lambda rng: {name: value for name, value in fed_norm_sgda_fact(rng).items() if name in names}


def fed_norm_sgda_directions(rng):
    gradxsq, noisysq, noisydrift, sampledrift = np.exp(rng.normal(size=4))
    c = fed_norm_sgda_round(rng)
    return c | dict(gradxsq=gradxsq, noisysq=noisysq, noisydrift=noisydrift, sampledrift=sampledrift)


def fed_norm_sgda_alike(rng):
    c = fed_norm_sgda_at_its_steps(rng)
    n, tau = len(c["w"]), int(rng.integers(1, 7))
    return c | dict(w=np.full(n, 1 / n), tau=np.full(n, tau), taueff=tau, taubar=tau)


def fed_norm_sgda_synchronized(rng):
    c = fed_norm_sgda_directions(rng)
    n = len(c["w"])
    return {name: c[name] for name in ("sigmaL", "betaL", "sigmaG", "betaG", "gradxsq")} | dict(w=np.full(n, 1 / n))


def fed_norm_sgda_table(rng):
    return dict(eps=np.exp(rng.normal()), n=int(rng.integers(1, 9)))


def fed_norm_sgda_rates(rng):
    n = int(rng.integers(1, 9))
    sigmaL, sigmaG = np.exp(rng.normal(size=2))
    counts = dict(n=n, P=int(rng.integers(1, n + 1)), taubar=int(rng.integers(1, 9)), T=int(rng.integers(1, 5000)))
    return counts | dict(sigmaL=sigmaL, sigmaG=sigmaG)


def fed_norm_sgda_round(rng):
    gradsq, gap, drift, direction = np.exp(rng.normal(size=4))
    c = fed_norm_sgda(rng) | dict(gradsq=gradsq, gap=gap, drift=drift, direction=direction)
    return {name: value for name, value in c.items() if name != "T"}


def fed_norm_sgda_dual_gap(rng):
    return fed_norm_sgda(rng) | dict(epsopt=np.exp(rng.normal()), direction=np.exp(rng.normal()))


def fed_norm_sgda_snapshot(rng):
    gradsq, gap, staledual, drift = np.exp(rng.normal(size=4))
    c = fed_norm_sgda_concave(rng) | dict(gradsq=gradsq, gap=gap, drift=drift, staledual=staledual)
    return {name: value for name, value in c.items() if name not in ("T", "R")}


def fed_norm_sgda_block(rng):
    c = fed_norm_sgda_concave(rng)
    return {name: value for name, value in c.items() if name != "T"}


def fed_norm_sgda_mismatch(rng):
    n = int(rng.integers(1, 9))
    Lf, sigmaG, epsopt, lag = np.exp(rng.normal(size=4))
    c = dict(Lf=Lf, sigmaG=sigmaG, epsopt=epsopt, lag=lag, betaG=rng.uniform(1, 2))
    return c | dict(p=rng.dirichlet(np.ones(n)), w=rng.dirichlet(np.ones(n)))


def fed_norm_sgda_moreau_mismatch(rng):
    Lf, epsbar, proxlag = np.exp(rng.normal(size=3))
    return dict(Lf=Lf, epsbar=epsbar, proxlag=proxlag)


SETTINGS = {
    "tdcd/theorem-1": tdcd,
    "tdcd/remark-5": tdcd_remark_5,
    "tdcd/wall-clock": tdcd_in_time,
    "tdcd/lemma-1": tdcd_round,
    "tdcd/lemma-2": tdcd_round,
    "fedmrn/theorem-1": fedmrn,
    "fedmrn/theorem-2": fedmrn,
    "fedmrn/lemma-1": fedmrn_iteration,
    "fedmrn/lemma-2": fedmrn_iteration,
    "fedmrn/lemma-3": fedmrn_iteration,
    "fedmrn/lemma-4": fedmrn_iteration,
    "fedmrn/lemma-5": fedmrn_iteration,
    "fedmrn/proposition-1": fedmrn,
    "fedmrn/remark-2-strongly-convex": fedmrn,
    "fedmrn/remark-2-non-convex": fedmrn,
    "fedau/theorem-2": fedau,
    "fedau/theorem-2-option-1": fedau,
    "fedau/theorem-3": fedau_weights,
    "fedau/theorem-1": fedau_theorem_1,
    "fedau/theorem-b.4.1": fedau_theorem_b_4_1,
    "fedau/lemma-b.3.1": fedau_round,
    "fedau/lemma-b.3.2": fedau_round,
    "fedau/lemma-b.3.3": fedau_round,
    "fedau/lemma-b.5.1": fedau_round,
    "fedau/lemma-b.6.1": fedau_interval,
    "fedau/lemma-b.6.1-variance": fedau_interval,
    "fedau/lemma-b.7.1": fedau_corollary,
    "fedau/corollary-4": fedau_corollary,
    "fedau/corollary-4-option-1": fedau_nearly_all_clients,
    "fedau/appendix-a.3": fedau_known,
    "fedau/appendix-a.3-unequal": fedau_corollary,
    "fedau/appendix-a.3-karimireddy": fedau_known,
    "fedau/appendix-a.3-yang": fedau_known,
    "fed-norm-sgda/theorem-1": fed_norm_sgda,
    "fed-norm-sgda/theorem-1-at-its-steps": fed_norm_sgda_at_its_steps,
    "fed-norm-sgda/theorem-2": fed_norm_sgda_theorem_2,
    "fed-norm-sgda/theorem-3": fed_norm_sgda_concave,
    "fed-norm-sgda/theorem-4": fed_norm_sgda_concave,
    "fed-norm-sgda/lemma-b.1": fed_norm_sgda_curvature,
    "fed-norm-sgda/lemma-b.3": fed_norm_sgda_round,
    "fed-norm-sgda/lemma-b.4": fed_norm_sgda_round,
    "fed-norm-sgda/lemma-b.5": fed_norm_sgda_dual_gap,
    "fed-norm-sgda/lemma-b.6": fed_norm_sgda_curvature,
    "fed-norm-sgda/lemma-c.1": fed_norm_sgda_snapshot,
    "fed-norm-sgda/lemma-c.2": fed_norm_sgda_snapshot,
    "fed-norm-sgda/lemma-c.3": fed_norm_sgda_block,
    "fed-norm-sgda/lemma-c.4": fed_norm_sgda_snapshot,
    "fed-norm-sgda/lemma-c.5": fed_norm_sgda_block,
    "fed-norm-sgda/corollary-1.1": fed_norm_sgda_mismatch,
    "fed-norm-sgda/corollary-1.2": fed_norm_sgda_rounds,
    "fed-norm-sgda/corollary-2.1": fed_norm_sgda_moreau_mismatch,
    "fed-norm-sgda/corollary-2.2": fed_norm_sgda_rounds_concave,
    "fed-norm-sgda/lemma-a.1": of_fact("usq", "vsq", "young"),
    "fed-norm-sgda/lemma-a.2": of_fact("mu", "slope", "distsq"),
    "fed-norm-sgda/lemma-a.3": of_fact("w", "squares", "fvalues"),
    "fed-norm-sgda/lemma-a.4": of_fact("n", "squares"),
    "fed-norm-sgda/lemma-a.5": of_fact("mu", "excess"),
    "fed-norm-sgda/lemma-a.5-gradient": of_fact("mu", "usq"),
    "fed-norm-sgda/lemma-a.6": of_fact("Lf", "bregman"),
    "fed-norm-sgda/lemma-a.7": of_fact("Lf", "excess"),
    "fed-norm-sgda/lemma-b.2": fed_norm_sgda_directions,
    "fed-norm-sgda/lemma-b.7": fed_norm_sgda_directions,
    "fed-norm-sgda/lemma-b.8": fed_norm_sgda_directions,
    "fed-norm-sgda/lemma-b.9": fed_norm_sgda_round,
    "fed-norm-sgda/remark-1": fed_norm_sgda_alike,
    "fed-norm-sgda/remark-3": fed_norm_sgda,
    "fed-norm-sgda/remark-6": fed_norm_sgda_synchronized,
    "fed-norm-sgda/table-1-nc-sc": fed_norm_sgda_table,
    "fed-norm-sgda/table-1-nc-sc-gradients": fed_norm_sgda_table,
    "fed-norm-sgda/table-1-nc-c": fed_norm_sgda_table,
    "fed-norm-sgda/table-1-nc-c-gradients": fed_norm_sgda_table,
    "fed-norm-sgda/table-1-nc-1pc": fed_norm_sgda_table,
    "fed-norm-sgda/table-1-nc-1pc-gradients": fed_norm_sgda_table,
    "fed-norm-sgda/table-2-nc-sc": fed_norm_sgda_rates,
    "fed-norm-sgda/table-2-nc-c": fed_norm_sgda_rates,
    "fed-norm-sgda/table-2-nc-1pc": fed_norm_sgda_rates,
}
OF_VECTORS = [f"fed-norm-sgda/lemma-a.{i}" for i in (1, 3, 4)]  # which assume nothing
PROGRESSIVE = ("sharp:progressive", "sharp:progressive-masks")
# another algorithm's error, or other assumptions or step sizes, so neither above nor below
APART = ("sharp:Bind", "explicit:best-c")
OTHER_MASKS = ("repaired:R1", "repaired:R2", "sharp:R2", "sharp:masks", "explicit:any-amplitude", *PROGRESSIVE)
GROWS = {
    "tdcd/theorem-1": "L Lmax Delta S",
    "tdcd/remark-5": "Lmax Deltainf",
    "tdcd/wall-clock": "L Lmax Delta S",
    "tdcd/lemma-1": "sigmaj gradsq",
    "tdcd/lemma-2": "Lmax G0",
    "fedmrn/theorem-1": "sigma G q Gamma Delta1",
    "fedmrn/theorem-2": "sigma G q F",
    "fedmrn/lemma-1": "sigma",
    "fedmrn/lemma-2": "G q S",
    "fedmrn/lemma-3": "G q S",
    "fedmrn/lemma-4": "Deltat Gamma V Dt",
    "fedmrn/lemma-5": "V Dt M",
    "fedmrn/proposition-1": "q",
    "fedmrn/remark-2-strongly-convex": "",
    "fedmrn/remark-2-non-convex": "",
    "fedau/theorem-2": "F sigma delta G W Q",
    "fedau/theorem-2-option-1": "F sigma delta W Q",
    "fedau/theorem-3": "",
    "fedau/theorem-1": "H sigma delta",
    "fedau/theorem-b.4.1": "H sigma delta",
    "fedau/lemma-b.3.1": "delta",
    "fedau/lemma-b.3.2": "sigma delta gamma gradsq",
    "fedau/lemma-b.3.3": "sigma delta",
    "fedau/lemma-b.5.1": "sigma delta",
    "fedau/lemma-b.6.1": "K",
    "fedau/lemma-b.6.1-variance": "K",
    "fedau/lemma-b.7.1": "",
    "fedau/corollary-4": "F sigma delta G",
    "fedau/corollary-4-option-1": "F sigma delta",
    "fedau/appendix-a.3": "F sigma delta",
    "fedau/appendix-a.3-unequal": "F sigma delta",
    "fedau/appendix-a.3-karimireddy": "",
    "fedau/appendix-a.3-yang": "I",
    "fed-norm-sgda/theorem-1": "sigmaL betaL sigmaG Delta delta0 etax etay",
    "fed-norm-sgda/theorem-1-at-its-steps": "sigmaL betaL sigmaG Delta delta0",
    "fed-norm-sgda/theorem-2": "sigmaL sigmaG",
    "fed-norm-sgda/theorem-3": "sigmaL betaL sigmaG Deltabar Gx R etax etay",
    "fed-norm-sgda/theorem-4": "sigmaL betaL sigmaG Deltabar Gx R etax etay",
    "fed-norm-sgda/lemma-b.1": "Lf kappa",
    "fed-norm-sgda/lemma-b.3": "sigmaL betaL sigmaG drift gap",
    "fed-norm-sgda/lemma-b.4": "sigmaL betaL sigmaG gradsq gap etax etay",
    "fed-norm-sgda/lemma-b.5": "sigmaL betaL sigmaG epsopt direction delta0 etax etay",
    "fed-norm-sgda/lemma-b.6": "Lf kappa gradsq gap",
    "fed-norm-sgda/lemma-c.1": "sigmaL betaL drift gap",
    "fed-norm-sgda/lemma-c.2": "sigmaL betaL sigmaG Gx staledual etax etay",
    "fed-norm-sgda/lemma-c.3": "sigmaL betaL sigmaG Gx R etax etay",
    "fed-norm-sgda/lemma-c.4": "sigmaL betaL Gx staledual S",
    "fed-norm-sgda/lemma-c.5": "sigmaL betaL sigmaG Gx R etax etay",
    "fed-norm-sgda/corollary-1.1": "epsopt lag sigmaG betaG",
    "fed-norm-sgda/corollary-1.2": "sigmaL betaL sigmaG Delta delta0",
    "fed-norm-sgda/corollary-2.1": "epsbar proxlag",
    "fed-norm-sgda/corollary-2.2": "sigmaL sigmaG",
    "fed-norm-sgda/lemma-a.1": "usq vsq",
    "fed-norm-sgda/lemma-a.2": "",
    "fed-norm-sgda/lemma-a.3": "squares",
    "fed-norm-sgda/lemma-a.4": "squares",
    "fed-norm-sgda/lemma-a.5": "excess",
    "fed-norm-sgda/lemma-a.5-gradient": "usq",
    "fed-norm-sgda/lemma-a.6": "Lf bregman",
    "fed-norm-sgda/lemma-a.7": "Lf excess",
    "fed-norm-sgda/lemma-b.2": "sigmaL betaL sigmaG gradxsq noisysq sampledrift direction",
    "fed-norm-sgda/lemma-b.7": "sigmaG gradsq gap noisydrift",
    "fed-norm-sgda/lemma-b.8": "sigmaG gap noisydrift",
    "fed-norm-sgda/lemma-b.9": "sigmaL betaL sigmaG gradsq gap etax etay",
    "fed-norm-sgda/remark-1": "sigmaL betaL sigmaG Delta delta0",
    "fed-norm-sgda/remark-3": "sigmaL betaL sigmaG Delta delta0 etax etay",
    "fed-norm-sgda/remark-6": "sigmaL betaL sigmaG gradxsq",
    "fed-norm-sgda/table-1-nc-sc": "",
    "fed-norm-sgda/table-1-nc-sc-gradients": "",
    "fed-norm-sgda/table-1-nc-c": "",
    "fed-norm-sgda/table-1-nc-c-gradients": "",
    "fed-norm-sgda/table-1-nc-1pc": "",
    "fed-norm-sgda/table-1-nc-1pc-gradients": "",
    "fed-norm-sgda/table-2-nc-sc": "sigmaL sigmaG",
    "fed-norm-sgda/table-2-nc-c": "",
    "fed-norm-sgda/table-2-nc-1pc": "",
}


AXES = {"R": np.array([10, 200, 3000]), "T": np.array([10, 200, 3000]), "K": np.array([1, 7, 30]),
        "delta": np.array([0.1, 1, 10]), "eps": np.array([0.3, 1, 2]), "epsopt": np.array([0.1, 1, 10]),
        "epsbar": np.array([0.1, 1, 10]), "usq": np.array([0.1, 1, 10]), "slope": np.array([10, 20, 30]),
        "excess": np.array([0.1, 1, 10]), "bregman": np.array([0.1, 1, 10]),
        "gap": np.array([0.1, 1, 10]), "gamma": np.array([1e-4, 2e-4, 3e-4]),
        "sigmaL": np.array([0.1, 1, 10]), "kappa": np.array([1, 2, 5]),
        "sigma": np.array([0.1, 1, 10]), "q": np.array([0.1, 1, 10]), "V": np.array([0.1, 1, 10]),
        "W": np.array([1e4, 1e5, 1e6]), "G0": np.array([0.1, 1, 10]), "gradsq": np.array([0.1, 1, 10])}  # fmt: skip


def test_every_result_of_the_papers_is_sampled():
    assert sorted(SETTINGS) == sorted(KEYS) == sorted(GROWS)


@pytest.mark.parametrize("result", EVERY, ids=KEYS)
def test_every_term_condition_and_step_has_its_unit(result):
    for form in result.forms:
        measure = (form.measure or result.measure).dimension
        for term in () if form.hidden else form.terms:  # hidden constants supply the unit
            assert dimension_of(term.expression, result.notation) in (None, measure), (form.name, term.name)
        for c in form.conditions:
            assert dimension_of(c.left, result.notation) == dimension_of(c.right, result.notation), c.text
        for step, expression in form.prescribes.items():
            assert dimension_of(expression, result.notation) == result.notation[step].dimension


def rescaled(result, constants, f, x):
    """The same problem with the objective in units 1/f and the parameters in units 1/x."""
    scaled = {}
    for name, value in constants.items():
        powers = dict(result.notation[name].dimension.exponents)
        scaled[name] = value * f ** float(powers.get("f", 0)) * x ** float(powers.get("x", 0))
    return scaled


def apparent(form, name, notation, f, x):
    """The unit that a term has where constants with units are hidden."""
    term = next(t for t in form.terms if t.name == name)
    powers = dict(dimension_of(term.expression, notation).exponents)
    return f ** float(powers.get("f", 0)) * x ** float(powers.get("x", 0))


@pytest.mark.parametrize("result", EVERY, ids=KEYS)
def test_changing_the_units_of_objective_and_parameters_changes_only_the_unit_of_the_bound(result):
    rng = np.random.default_rng(20)
    for form in result.forms:
        powers = dict((form.measure or result.measure).dimension.exponents)
        for f, x in ((3.0, 1.0), (1.0, 0.2), (0.7, 5.0)):
            c = SETTINGS[result.key](rng)
            before, after = (evaluated(result, one, form=form.name) for one in (c, rescaled(result, c, f, x)))
            unit = f ** float(powers.get("f", 0)) * x ** float(powers.get("x", 0))
            for name, value in before.terms.items():
                there = float(value) * (apparent(form, name, result.notation, f, x) if form.hidden else unit)
                assert float(after.terms[name]) == pytest.approx(there, rel=1e-9, abs=1e-300)
            assert [bool(one.holds) for one in before.conditions] == [bool(one.holds) for one in after.conditions]


@pytest.mark.parametrize("result", EVERY, ids=KEYS)
def test_the_default_form_is_valid_at_admissible_settings_and_no_larger_than_any_other_unrefuted_form(result):
    rng = np.random.default_rng(21)
    strictly = 0
    apart = (*APART, *OTHER_MASKS, result.default)
    others = [f for f in result.forms if not (f.refuted_by or f.order_only or f.name in apart)]
    default = result.form()  # forms of one bound differ in what they assume
    others = [f for f in others if f.measure == default.measure and f.bound != default.bound and not f.asymptotic]
    for _ in range(60):
        c = SETTINGS[result.key](rng)
        ours = evaluated(result, c)
        assert ours.valid, ours.why_not
        assert float(ours.value) == pytest.approx(sum(map(float, ours.terms.values())), rel=1e-12)
        for form in others:
            theirs = evaluated(result, c, form=form.name)
            slack = 1e-12 * abs(float(theirs.value))
            assert not theirs.valid or float(ours.value) <= float(theirs.value) + slack, (form.name, c)
            strictly += float(ours.value) < float(theirs.value) - 1e-3 * abs(float(theirs.value))
    assert strictly or not others


@pytest.mark.parametrize("result", EVERY, ids=KEYS)
def test_every_form_grows_with_gap_noise_and_divergence_and_falls_with_the_rounds(result):
    rng = np.random.default_rng(22)
    for form in result.forms:
        for _ in range(5):
            c = SETTINGS[result.key](rng)
            before = float(evaluated(result, c, form=form.name).value)
            for name in GROWS[result.key].split():
                more = c[name] + 1 if isinstance(c[name], int) else 1.01 * c[name]
                after = float(evaluated(result, c | {name: more}, form=form.name).value)
                assert after >= before - 1e-12 * abs(before), (form.name, name)
            counters = {q.name for q in result.notation.values() if q.concept in ("rounds", "iterations")}
            for rounds in counters & {s.name for s in form.symbols} & set(c):
                after = float(evaluated(result, c | {rounds: 2 * c[rounds] + 1}, form=form.name).value)
                if form.name != "printed" or result.key != "fedau/theorem-3" or c["T"] > 3:  # log T/T rises up to e
                    jumps = form.name == "sharp" and "K" in form.prescribes  # with the whole K
                    assert jumps or after <= before * (1 + 1e-12), form.name


@pytest.mark.parametrize("result", EVERY, ids=KEYS)
def test_a_guarantee_needs_a_form_that_is_not_refuted_every_condition_and_every_assumption(result):
    setting = SETTINGS[result.key](np.random.default_rng(23))
    for form in result.forms:
        c = {name: value for name, value in setting.items() if name not in form.prescribes}
        evaluation = evaluated(result, c, form=form.name, assume=["all"])
        promised = not (form.order_only or form.refuted_by or form.asymptotic or not evaluation.valid)
        promised &= not any(reason.startswith("no problem") for reason in evaluation.why_not)  # an empty class
        proved = evaluation.verdict == "proved"
        assert evaluation.guarantee == (promised and proved), evaluation.why_not
        assert proved or form.refuted_by or any("has not proved it" in reason for reason in evaluation.why_not)
        trusted = evaluated(result, c, form=form.name, assume=["all"], trust=[result.key])
        assert trusted.guarantee == promised
        assert bool(trusted.conditional_on) == (evaluation.verdict not in ("proved", "refuted"))
        assert evaluated(result, c, form=form.name).guarantee == (proved and not form.assumptions and promised)
        assert form.refuted_by or evaluation.verdict != "refuted"
        assert not (form.refuted_by and evaluation.verdict == "proved")  # itself false, or resting on a false step


@pytest.mark.parametrize("result", EVERY, ids=KEYS)
def test_arrays_of_settings_broadcast_with_vectors_over_clients(result):
    rng = np.random.default_rng(24)
    c = SETTINGS[result.key](rng)
    vectors = {q.name for q in result.notation.values() if q.shape and q.name in c}
    used = {s.name for s in result.form().symbols}
    name, values = next(((n, v) for n, v in AXES.items() if n in {*c} & used), ("squares", None))
    if values is None:  # nothing but vectors
        values = np.exp(rng.normal(size=(3, len(c[name]))))
        vectors -= {name}
    table = evaluated(result, c | {name: values})
    assert table.value.shape == (3,)
    for i, value in enumerate(values):
        one = evaluated(result, c | {name: value})
        assert table.value[i] == pytest.approx(float(one.value), rel=1e-12)
    for vector in vectors - {"tau"}:  # one vector per setting
        whole = c[vector]
        others = [whole[::-1], np.roll(whole, 1)] if result.notation[vector].total else [whole * 0.9, whole * 0.5]
        stacked = np.stack([whole, *others])
        both = evaluated(result, c | {name: values, vector: stacked})
        for i, value in enumerate(values):
            one = evaluated(result, c | {name: value, vector: stacked[i]})
            assert both.value[i] == pytest.approx(float(one.value), rel=1e-12)


def test_a_hundred_thousand_settings_of_a_vector_form_equal_one_evaluation_each():
    result = load("fed-norm-sgda/theorem-1")
    rng = np.random.default_rng(25)
    c = fed_norm_sgda(rng)
    many = rng.uniform(0.1, 1, 100_000) * c["gammay"]
    table = evaluated(result, c | {"gammay": many})
    assert table.value.shape == table.valid.shape == (100_000,)
    for i in rng.integers(0, 100_000, 5):
        one = evaluated(result, c | {"gammay": many[i]})
        assert table.value[i] == pytest.approx(float(one.value), rel=1e-13) and table.valid[i] == one.valid


@pytest.mark.parametrize("result", EVERY, ids=KEYS)
def test_every_result_is_complete(result):
    assert result.form().name == result.default and not result.form().refuted_by
    assert result.title and result.statement
    assert len({f.name for f in result.forms}) == len(result.forms)
    for form in result.forms:
        assert {s.name for s in form.symbols} <= set(result.notation)
        assert all(s == result.notation[s.name].symbol for s in form.symbols)
        assert form.note and (form.assumptions or result.key in OF_VECTORS)


@pytest.mark.parametrize("room", ROOMS)
def test_each_paper_has_its_reference_and_no_two_symbols_share_a_concept(room):
    one = paper(room)
    concepts = [q.concept for q in one.results[0].notation.values()]
    assert len(set(concepts)) == len(concepts)
    assert one.bibtex.startswith("@") and one.bibtex.count("{") == one.bibtex.count("}")
    assert one.reference.split(",")[1].strip()


def test_constants_may_be_given_by_concept():
    result = load("tdcd/theorem-1")
    c = dict(smoothness=2, block_smoothness=1, initial_gap=1, block_gradient_noise=0.5, local_steps=5, rounds=100)
    got = evaluated(result, c | dict(local_step_size=0.01), form="repaired")
    assert float(got.value) == pytest.approx(1.024, rel=1e-14)


def test_an_assumption_bounds_by_a_symbol_of_its_paper():
    """FedAU's divergence was bounded by d, which is its dimension."""
    for one in papers():
        for result in one.results:
            for assumption in (a for form in result.forms for a in form.assumptions):
                for symbol in re.findall(r"\| <= (\w+)", assumption.statement):
                    assert symbol in result.notation, (result.key, assumption.name, symbol)
