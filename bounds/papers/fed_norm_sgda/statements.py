"""Statements of Sharma et al. (2023) besides its results: definitions, assumptions, remarks, special cases."""

from __future__ import annotations

from fedbounds.bounds.papers.fed_norm_sgda.results import PAPER
from fedbounds.bounds.theory.result import Source
from fedbounds.bounds.theory.statement import Statement, StatementKind


def said(
    name: str,
    kind: StatementKind,
    title: str,
    number: str,
    says: str,
    latex: str = "",
    *,
    equations: tuple[str, ...] = (),
    claims: tuple[str, ...] = (),
    note: str = "",
) -> Statement:
    """One statement of the paper."""
    key = f"fed-norm-sgda/{name}"
    return Statement(key, kind, title, Source(PAPER, number, equations), says, latex, claims, note)


SETTING = (
    said("problem", "equation", "The problem", "Section 1",
         "min over x, max over y of F(x, y) = sum_i p_i f_i(x, y), the p_i >= 0 summing to one.",
         r"\min_x\max_y\ F(x,y)=\sum_{i=1}^np_if_i(x,y)", equations=("1",)),
    said("naive-averaging", "equation", "What naive averaging minimizes", "Section 4.1",
         "A server that adds up the clients' plain updates steps along sum_i w_i g_i, times taueff gamma, with w_i = "
         "p_i |a_i|_1/sum_j p_j |a_j|_1 and taueff = sum_j p_j |a_j|_1: it minimizes the envelope of sum_i w_i f_i.",
         r"w_i=\frac{p_i\|a_i\|_1}{\sum_jp_j\|a_j\|_1},\qquad\tau_{\rm eff}=\sum_jp_j\|a_j\|_1", equations=("2",),
         note="With p given, taueff has this value where w is naive."),
    said("server-direction", "equation", "The server's direction", "Section 4.2",
         "The server steps along the sum over the sample of (n w_i/P) g_i.",
         r"g_x^{(t)}=\sum_{i\in\mathcal C^{(t)}}\frac{nw_i}P\,g_{x,i}^{(t)}", equations=("3",),
         claims=("lemma-b.2/20x",)),
    said("robust-training", "equation", "Robust training", "Section 5",
         "min over the model x, max over one perturbation |y|^2 <= 1 of all samples, of the sum of the losses.",
         r"\min_x\max_{\|y\|^2\le1}\sum_jl(h_x(a_j+y),b_j)", equations=("8",),
         note="The theorems have no constraint on y."),
    said("fair-classification", "equation", "Fair classification", "Section 5",
         "min over the model x, max over y in the simplex of the classes, of sum_c y_c F_c(x) - lambda/2 |y|^2.",
         r"\min_x\max_{y\in\Delta_C}\sum_cy_cF_c(x)-\frac\lambda2\|y\|^2", equations=("9",),
         note="The theorems have no constraint on y."),
    said("local-map", "equation", "The local map", "Appendix A.1",
         "The k-th local model is x - eta_x sum_{j<k} a_i^(j)(k) g_j, and y + eta_y ... in y; the client returns its "
         "sum of a_i^(k)(tau_i) g_k over |a_i|_1.",
         r"x_i^{(t,k)}=x^{(t)}-\eta_x^c\sum_{j<k}a_i^{(j)}(k)\,\nabla_xf_i(x_i^{(t,j)},y_i^{(t,j)};\xi_i^{(t,j)})",
         equations=("12", "45"), note="(45) is Fed-Norm-SGDA+, whose gradient in y is taken at the snapshot of x."),
)  # fmt: skip

DEFINITIONS = (
    said("definition-1", "definition", "Stationary point", "Definition 1",
         "x is epsilon-stationary for a differentiable g if |grad g(x)| <= epsilon.", r"\|\nabla g(x)\|\le\epsilon"),
    said("definition-2", "definition", "Stochastic gradient complexity", "Definition 2",
         "The number of gradients that one client computes over the whole run, T tau."),
    said("definition-3", "definition", "Communication round", "Definition 3",
         "The server sends the model to the sample, each client takes its local steps and returns one vector for each "
         "block; there are T rounds."),
    said("definition-4", "definition", "Moreau envelope", "Definition 4",
         "phi_lambda(x) = min over x' of phi(x') + |x' - x|^2/(2 lambda); with lambda = 1/(2 Lf) its gradient is 2 Lf "
         "times the way from the proximal point to x.",
         r"\phi_\lambda(x)=\min_{x'}\phi(x')+\frac1{2\lambda}\|x'-x\|^2"),
)  # fmt: skip

ASSUMPTIONS = (
    said("assumption-1", "assumption", "Smoothness", "Assumption 1",
         "|grad f_i(z) - grad f_i(z')| <= Lf |z - z'| for z = (x, y) and every client.",
         r"\|\nabla f_i(z)-\nabla f_i(z')\|\le L_f\|z-z'\|"),
    said("assumption-2", "assumption", "Local variance", "Assumption 2",
         "Unbiased gradients with E|grad f_i(z; xi) - grad f_i(z)|^2 <= betaL^2 |grad f_i(z)|^2 + sigmaL^2.",
         r"\mathbb E\|\nabla f_i(z;\xi)-\nabla f_i(z)\|^2\le\beta_L^2\|\nabla f_i(z)\|^2+\sigma_L^2",
         claims=("erratum/noise-bounded-as-a-whole",),
         note="The proofs use it for each block, which follows from it only if betaL = 0. The erratum is about that "
         "use; an assumption is neither true nor false."),
    said("assumption-3", "assumption", "Global heterogeneity", "Assumption 3",
         "For any weights on the simplex there are betaG >= 1 and sigmaG >= 0 with, in either block, sum_i w_i |grad "
         "f_i|^2 <= betaG^2 |sum_i w_i grad f_i|^2 + sigmaG^2 everywhere.",
         r"\sum_iw_i\|\nabla_bf_i\|^2\le\beta_G^2\Big\|\sum_iw_i\nabla_bf_i\Big\|^2+\sigma_G^2,\quad b=x,y",
         claims=("repair/quadratics-outside-assumption-3",), note="The proofs use the weights of the algorithm only."),
    said("assumption-4", "assumption", "Strong concavity", "Assumption 4", "Every f_i(x, .) is mu-strongly concave."),
    said("assumption-5", "assumption", "The PL condition", "Assumption 5",
         "max_y f(x, y) is attained and |grad_y f|^2 >= 2 mu (max_y f - f).",
         r"\|\nabla_yf(x,y)\|^2\ge2\mu\big(\max_{y'}f(x,y')-f(x,y)\big)"),
    said("assumption-6", "assumption", "Concavity", "Assumption 6", "Every f_i(x, .) is concave."),
    said("assumption-7", "assumption", "Lipschitz in x", "Assumption 7",
         "|f_i(x, y) - f_i(x', y)| <= Gx |x - x'| for every y.", r"|f_i(x,y)-f_i(x',y)|\le G_x\|x-x'\|"),
    said("assumption-8", "assumption", "One-point concavity", "Assumption 8",
         "<grad_y f(x, y), y - y*(x)> <= f(x, y) - f(x, y*(x)) at a maximizer y*(x).",
         r"\langle\nabla_yf(x,y),y-y^*(x)\rangle\le f(x,y)-f(x,y^*(x))",
         note="Printed with y' inside the gradient, a slip. Theorem 3 needs one y*(x) for all clients."),
)  # fmt: skip

REMARKS = (
    said("remark-7", "remark", "The local coefficients", "Remark 7",
         "No coefficient is above alpha, and the norms of a_i(k) do not decrease in k.",
         claims=("erratum/shrinking-local-coefficients",),
         note="What (26) to (29) need is a_i^(j)(k) <= a_i^(j)(tau_i) for all j < k <= tau_i. The erratum is about "
         "what is drawn from the norms."),
    said("remark-8", "remark", "Where concavity is used", "Remark 8",
         "In the proof of Theorem 4 only (70) uses concavity, so one-point concavity at a common maximizer is enough.",
         claims=("lemma-c.5/70a", "theorem-3[sharp]")),
    said("remark-9", "remark", "The weights that are meant", "Remark 9",
         "With w = p the weighted objective is the one that is meant.", claims=("limit/proximal-points-that-agree",)),
)  # fmt: skip

STEPS_OF_THEOREM_4 = (
    said("drift-at-a-snapshot", "equation", "Local drift in y with the gradient at a snapshot", "proof of Lemma C.2",
         "E|y_i^(t,k) - y_t|^2 <= eta_y^2 (sum_j [a_i^(j)(k)]^2 (sigmaL^2 + betaL^2 E|G_j|^2) + sum_j a_i^(j)(k) sum_j "
         "a_i^(j)(k) E|G_j|^2), sums over j < k, G_j the gradient in y at the snapshot's x.",
         equations=("65",), claims=("lemma-c.2/25y-printed", "lemma-c.2/25y"),
         note="As (25), it drops the product of noise and later gradients."),
    said("steps-of-theorem-4", "equation", "Snapshot period and steps in closed form", "proof of Theorem 4",
         "In the bound (48) without its constants: S = sqrt(R/(taueff^2 gamma_x gamma_y Gx I_1)) makes both terms with "
         "S equal, gamma_y = (P/(2 I_2))^(2/3) (R gamma_x Gx I_1)^(1/3) balances them with the noise, and gamma_x = (3 "
         "Delta/(taueff Lf T))^(3/4) (I_2 R Gx I_1/P)^(-1/4) that with the initial gap; what is left is 4/3^(3/4) "
         "Lf^(3/4) (Delta I_1 I_2 R Gx/(taueff P T))^(1/4).",
         r"S=\sqrt{\frac R{\tau_{\rm eff}^2\gamma_x\gamma_yG_x\mathcal I_1}},\quad"
         r"\gamma_y=\Big(\frac P{2\mathcal I_2}\Big)^{2/3}(R\gamma_xG_x\mathcal I_1)^{1/3},\quad"
         r"\gamma_x=\Big(\frac{3\bar\Delta}{\tau_{\rm eff}L_fT}\Big)^{3/4}"
         r"\Big(\frac{\mathcal I_2RG_x\mathcal I_1}P\Big)^{-1/4}",
         equations=("50", "51", "52", "53"),
         claims=("limit/snapshot-period-in-closed-form", "limit/ascent-step-in-closed-form",
                 "limit/descent-step-in-closed-form", "wording/effective-steps-of-50", "wording/heterogeneity-of-7"),
         note="This gamma_y breaks the theorem's own cap once n tau grows faster than T^(1/3)."),
    said("one-client-without-noise", "equation", "One client without noise", "special cases of Theorem 4",
         "n = taueff = 1 and sigmaL = sigmaG = 0: I_1^2 = (1 + betaL^2) Gx^2 and I_2 = 0.",
         r"\mathcal I_1=G_x\sqrt{\beta_L^2+1},\quad\mathcal I_2=0", equations=("56",),
         claims=("limit/one-client-without-noise", "limit/one-client-without-noise-i-2")),
    said("one-client", "equation", "One client", "special cases of Theorem 4",
         "n = taueff = 1: I_1^2 = sigmaL^2 + (1 + betaL^2) Gx^2 and I_2 = sigmaL^2 without heterogeneity.",
         r"\mathcal I_1^2=\sigma_L^2+(\beta_L^2+1)G_x^2,\quad\mathcal I_2=\sigma_L^2", equations=("57",),
         claims=("limit/one-client", "limit/one-client-i-2")),
    said("synchronized-clients", "equation", "One local step, all clients", "special cases of Theorem 4",
         "w_i = 1/n, P = n, tau = 1: I_1^2 = Gx^2 + (sigmaL^2 + betaL^2 Gx^2)/n.",
         r"\mathcal I_1^2=G_x^2+\frac{\sigma_L^2+\beta_L^2G_x^2}n", equations=("58",), claims=("limit/synchronized",)),
    said("equal-local-steps", "equation", "Equal local steps, all clients", "special cases of Theorem 4",
         "w_i = 1/n, P = n, tau steps each: I_1^2 = Gx^2 + (sigmaL^2 + betaL^2 Gx^2)/(n tau), I_2 = sigmaL^2 + betaL^2 "
         "sigmaG^2, C_w = tau - 1, D = (tau - 1)(tau - 1 + betaL^2).",
         r"\mathcal I_1^2=G_x^2+\frac{\sigma_L^2+\beta_L^2G_x^2}{n\tau},\quad"
         r"\mathcal I_2=\sigma_L^2+\beta_L^2\sigma_G^2",
         equations=("59",), claims=("limit/equal-local-steps", "limit/equal-local-steps-i-2")),
)  # fmt: skip
STATEMENTS = (*SETTING, *DEFINITIONS, *ASSUMPTIONS, *REMARKS, *STEPS_OF_THEOREM_4)
