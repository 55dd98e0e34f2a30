"""Statements of Das et al. (2022) besides their results: problem, algorithm, assumptions, lines of proofs."""

from fedbounds.bounds.theory.statement import Body, PaperStatements

PAPER = PaperStatements("tdcd", "Das et al. 2022", "Appendix")

PROBLEM = PAPER.table(
    {
        ("objective", "definition", "The objective", "Section 3"): Body(
            "L(theta) is the mean over M samples of the loss at the sum of the silos' embeddings h_j(theta_j; X_j) of "
            "the sample; theta = (theta_1, ..., theta_N)",
            r"\mathcal L(\tilde\theta)=\frac1M\sum_{p=1}^M\ell"
            r"\Big(\sum_{j=1}^Nh_j(\tilde\theta_j;X_j^{(p)});y^{(p)}\Big)",
            number="1 2 3",
            claims="erratum/unequal-shards wording/concatenated wording/others-sum",
        ),
        ("local-gradient", "definition", "A client's stochastic partial gradient", "Section 3"): Body(
            "g_kj: the mean over the client's part of the batch of the gradient in theta_j of the loss at its own "
            "embedding plus the others' as they were at the last exchange",
            number="4",
            claims="wording/empty-part",
        ),
        ("local-step", "equation", "A local step", "Section 3"): Body(
            "theta_kj <- theta_kj - eta g_kj, Q times on one batch",
            r"\theta_{k,j}^{t+1}=\theta_{k,j}^t-\eta g_{k,j}",
            number="5",
            claims="lemma-2/2a erratum/last-step-is-averaged-away",
            note="The others' embeddings are one local step old from the second local step on.",
        ),
        ("virtual-average", "definition", "The averaged direction", "Section 4"): Body(
            "G_j^t is the mean over the clients of silo j of their g_kj, and theta^{t+1} = theta^t - eta G^t for the "
            "virtual average theta^t",
            r"\tilde\theta^{t+1}=\tilde\theta^t-\eta G^t",
            number="11 12 13 22",
            claims="theorem-1/8 wording/symbols",
            note="Exact for every t; a hub has the average after every Q steps.",
        ),
        ("local-view", "definition", "A client's view of the model", "Appendix"): Body(
            "y_kj^t: its own block as it is, all other blocks as they were at the last exchange",
            r"y_{k,j}^t=[(\theta_{-j}^{t_0}),(\theta_{k,j}^t)]",
            number="16 17",
            claims="lemma-2/2a",
        ),
        ("conditional-expectation", "definition", "Expectation in a round", "Appendix"): Body(
            "E^{t_0} is the expectation over the batch of the round that starts at t_0, given all before",
            number="18 19 20 21",
            claims="theorem-1/11 wording/history",
        ),
        ("latency", "definition", "The latency of a round", "Section 5"): Body(
            "a round takes 3 tcomm + Q tcomp",
            r"t_Q=3t_{comm}+Qt_{comp}",
            claims="limit/one-local-step-is-best-in-time erratum/more-local-steps-in-time wording/time-axis",
        ),
    }
)
ASSUMPTIONS = PAPER.table(
    {
        ("assumption-1", "assumption", "Smoothness", "Assumption 1"): Body(
            "|grad L(x) - grad L(y)| <= L |x - y|, and |g_kj(x) - g_kj(y)| <= L_kj |x - y| for every batch",
            r"\|g_{k,j}(\theta_1)-g_{k,j}(\theta_2)\|\le L_{k,j}\|\theta_1-\theta_2\|",
            number="6 7",
            note="Lemma 2 uses it in block j alone.",
        ),
        ("largest-constant", "definition", "Lmax", "Section 4"): Body(
            "Lmax is the maximum over k of L_kj",
            r"L_{max}=\max_kL_{k,j}",
            number="10",
            claims="erratum/largest-over-clients-alone",
        ),
        ("assumption-2", "assumption", "Lower bound", "Assumption 2"): Body(
            "L(theta) >= L_inf", claims="theorem-1/21 wording/below"
        ),
        ("assumption-3", "assumption", "Unbiased gradients of bounded variance", "Assumption 3"): Body(
            "for every theta, E g_kj = grad_j L and E|g_kj - grad_j L|^2 <= sigma_j^2",
            r"\mathbb E_\zeta\|g_{k,j}-\nabla_{(j)}\mathcal L\|^2\le\sigma_j^2",
            number="8 9",
            claims="erratum/shards-are-noise-too repair/no-uniform-noise",
            note="Needed at synchronized models alone, and on average over the clients of a silo.",
        ),
    }
)
REMARKS = PAPER.table(
    {
        ("remark-2", "remark", "Labels in one silo", "Remark 2"): Body(
            "all embeddings can be sent to the silo that has the labels, which returns derivatives",
            claims="erratum/labels-returned-once repair/labels-returned-once",
        ),
        ("remark-3", "remark", "One silo", "Remark 3"): Body(
            "for N = 1 TDCD is local SGD, with a rate similar to that of Yu et al. (2019) in the orders of Q, K_j and "
            "L",
            claims="erratum/order-of-local-steps repair/order-of-local-steps",
        ),
        ("remark-4", "remark", "One client in each silo", "Remark 4"): Body(
            "for K_j = 1 TDCD is vertical federated learning, with a rate like that of Liu et al. (2020) in Q, N and L",
            claims="limit/one-client-in-each-silo limit/remark-4-in-root-t-rounds repair/remark-4-rounds "
            "repair/remark-4-rate",
        ),
    }
)
LINES = PAPER.lines(
    {
        ("24 25 26 27 28 29", "Bias and variance"): Body(
            "E|g|^2 = E|g - grad_j L|^2 + |grad_j L|^2",
            claims="lemma-1-client/24 lemma-1-client/24c lemma-1-client/28 lemma-1-client/23",
        ),
        ("31 32 33", "Young's inequality with n = Q"): Body("", claims="lemma-2/1"),
        ("34 35", "The change in one local step"): Body(
            "|g^s - g^{s-1}| <= Lmax eta |g^{s-1}|", claims="lemma-2/2b lemma-2/2"
        ),
        ("36 37 38 39", "One local step"): Body("", claims="lemma-2/3a lemma-2/3 wording/symbols"),
        ("40 41 42 43", "The bracket"): Body(
            "2 (1 + Q) Lmax^2 eta^2 + 1 + 1/Q <= 1 + 2/Q", claims="lemma-2/4 wording/mean-over-clients"
        ),
        ("45 46 47 48", "The recursion, unrolled"): Body("", claims="lemma-2/0 lemma-2/5 lemma-2/6"),
        ("49 50 51 52 53 54 55 56", "The drift, summed"): Body(
            "Psi <= Xi Q^2 ((1 + 2/Q)^Q - 3)/4 <= 2 Xi Q^2", claims="lemma-2/6' lemma-2/7a wording/brackets"
        ),
        ("57", "Lemma 2"): Body("", claims="lemma-2/7"),
        ("58", "Descent lemma for a round"): Body(
            "L(theta^+) - L(theta) <= <grad L(theta), theta^+ - theta> + L/2 |theta^+ - theta|^2",
            claims="theorem-1/8 erratum/next-exchange-off-by-one",
        ),
        ("59 60 61 62 63", "The steps of a round"): Body(
            "theta^+ - theta = -eta sum_s G^s, and g^s = g^0 + (g^s - g^0)",
            claims="theorem-1/8 theorem-1/9 erratum/next-exchange-off-by-one",
        ),
        ("64 65", "Young's inequality"): Body("", claims="theorem-1/10 wording/product"),
        ("66 67 68 69", "Unbiased at first"): Body("", claims="theorem-1/11a theorem-1/11b theorem-1/11c theorem-1/11"),
        ("70 71 73", "The squared step"): Body(
            "|sum_s G^s|^2 <= 2 Q sum_s (|G^s - G^0|^2 + |G^0|^2), then Jensen over the clients",
            claims="theorem-1/12 theorem-1/13 theorem-1/14",
            note="(73) is where averaging over clients stops to help; sharp:Bind keeps it.",
        ),
        ("72 74 75 76 77", "One round"): Body("", claims="theorem-1/15b theorem-1/15 theorem-1/16"),
        ("78 79", "One round, sorted"): Body("", claims="theorem-1/17 theorem-1/17s"),
        ("80", "1 + Q <= 2 Q"): Body("", claims="theorem-1/18a theorem-1/18"),
        ("81 82", "Half of the gradient is left"): Body("", claims="theorem-1/19 theorem-1/19-19"),
        ("83 84 85", "The sum over the rounds"): Body("", claims="theorem-1/20a theorem-1/20b"),
    }
)
STATEMENTS = (*PROBLEM, *ASSUMPTIONS, *REMARKS, *LINES)
