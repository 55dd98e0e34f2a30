"""Statements of Wang & Ji (2022) besides their results: displayed equations, remarks with rates, and a table."""

from fedbounds.bounds.theory.statement import Body, PaperStatements

PAPER = PaperStatements("arbitrary-participation", "Wang & Ji 2022")
JENSEN = "Appendix C.1"
STATEMENTS = PAPER.table(
    {
        ("equation-12", "equation", "The offsets from f sum to zero", "Section 4.1"): Body(
            "sum_n mu_{t_0} (F_n - f) = 0 for any constant mu_{t_0}, because f is the mean of the F_n",
            r"\sum_n\mu_{t_0}(F_n-f)=0",
            number="12",
            claims="proposition-4.2/D1",
            note="Printed without gradients; (13) uses it after differentiating.",
        ),
        ("equation-13", "equation", "Window divergence by deviations of the mean weights", "Section 4.1"): Body(
            "the left-hand side of (7) is |sum_n (qbar_n - mu_{t_0})(grad F_n - grad f)|^2",
            r"\Big\|\sum_n\big[\overline{q^n_{t_0}}-\mu_{t_0}\big](\nabla F_n-\nabla f)\Big\|^2",
            number="13",
            claims="proposition-4.2/D1 equation-15-median/D1",
        ),
        (
            "equation-16",
            "equation",
            "Chebyshev's inequality for one client and one window",
            "Section 4.2, before Proposition 4.6",
        ): Body(
            "(qbar_n - mu_{t_0})^2 <= upsilonhat^2/(c P) with probability at least 1 - c",
            r"\Pr\Big\{\big(\overline{q^n_{t_0}}-\mu_{t_0}\big)^2\le\tfrac{\hat\upsilon^2}{cP}\Big\}\ge1-c",
            number="16",
            claims="erratum/chebyshev-for-one-window",
            note="By Chebyshev's inequality it holds wherever Var(qbar_n) <= upsilonhat^2/P, which Lemma 4.5 gives as "
            "P grows. The erratum is about its use for all windows at once.",
        ),
        (
            "equation-17",
            "equation",
            "Hoeffding's inequality for one client and one window",
            "Section 4.2, before Proposition 4.7",
        ): Body(
            "(qbar_n - mu_{t_0})^2 <= ln(2/c)/(2P) with probability at least 1 - c",
            r"\Pr\Big\{\big(\overline{q^n_{t_0}}-\mu_{t_0}\big)^2\le\tfrac{\ln(2/c)}{2P}\Big\}\ge1-c",
            number="17",
            claims="erratum/per-client-is-not-all-clients erratum/one-window-is-not-all-windows",
            note="It holds, by Hoeffding's inequality, for one client and one window. The errata are about its use for "
            "all clients and all windows at once.",
        ),
        ("equation-c.1", "equation", "Jensen's inequality for a mean", JENSEN): Body(
            "|(1/M) sum_m z_m|^2 <= (1/M) sum_m |z_m|^2",
            r"\Big\|\tfrac1M\sum_m\mathbf z_m\Big\|^2\le\tfrac1M\sum_m\|\mathbf z_m\|^2",
            number="C.1",
        ),
        ("equation-c.2", "equation", "Jensen's inequality for a sum", JENSEN): Body(
            "|sum_m z_m|^2 <= M sum_m |z_m|^2",
            r"\Big\|\sum_m\mathbf z_m\Big\|^2\le M\sum_m\|\mathbf z_m\|^2",
            number="C.2",
            claims="lemma-c.1/L1.2 lemma-c.2/L2.2",
        ),
        ("equation-c.3", "equation", "Young's inequality for a product", JENSEN): Body(
            "<z_1, z_2> <= (b/2)|z_1|^2 + |z_2|^2/(2b) for any b > 0",
            r"\langle\mathbf z_1,\mathbf z_2\rangle\le\tfrac b2\|\mathbf z_1\|^2+\tfrac1{2b}\|\mathbf z_2\|^2",
            number="C.3",
        ),
        ("equation-c.4", "equation", "Young's inequality for a sum", JENSEN): Body(
            "|z_1 + z_2|^2 <= (1 + b)|z_1|^2 + (1 + 1/b)|z_2|^2 for any b > 0",
            r"\|\mathbf z_1+\mathbf z_2\|^2\le(1+b)\|\mathbf z_1\|^2+(1+\tfrac1b)\|\mathbf z_2\|^2",
            number="C.4",
            claims="lemma-c.1/L1.2 lemma-c.2/L2.2",
        ),
        ("equation-c.7", "equation", "From the recursion to Lemma C.1", "Proof of Lemma C.1"): Body(
            "the cap on gamma in (C.6), and the geometric sum that it gives",
            number="C.7",
            claims="lemma-c.1/L1.5 lemma-c.1/L1.7",
            note="Listed by its place between (C.6) and (C.8); the steps are ours in detail.",
        ),
        ("equation-c.9", "equation", "The recursion of the drift", "Proof of Lemma C.2"): Body(
            "D^+ <= (1 + 5/(9(IP-1/2))) D + gamma^2 I nu^2/P + 8IP gamma^2 beta^2 + 8IP gamma^2 E|grad f(x_{t_0})|^2 + "
            "gamma^2 sigma^2 [rho^2 + (1 - S_t)/(6P)]",
            r"D^+\le\big(1+\tfrac5{9(IP-1/2)}\big)D+\tfrac{\gamma^2I\tilde\nu^2}P+8IP\gamma^2\tilde\beta^2"
            r"+8IP\gamma^2G_{t_0}+\gamma^2\sigma^2\big[\rho^2+\tfrac{1-S_t}{6P}\big]",
            number="C.9",
            claims="lemma-c.2/L2.7 erratum/earlier-rounds-in-lemma-c.2",
            note="It holds in each round. The erratum is about the S_t that unrolling it leaves.",
        ),
        (
            "equations-c.10-to-c.12",
            "equation",
            "From one round to the next, and the geometric sum of a window",
            "Proof of Lemma C.2",
        ): Body(
            "what is unrolled in the display after (C.12): a round starts where the last one ended, so at most IP "
            "steps",
            number="C.10 C.11 C.12",
            claims="lemma-c.2/L2.8b lemma-c.2/L2.9",
            note="Listed by their place between (C.9) and the unrolled display.",
        ),
        ("equation-c.13", "equation", "Descent over one window", "Appendix C.3"): Body(
            "E f(x_{t_0+P}) <= E f(x_{t_0}) - gamma eta E<grad f(x_{t_0}), S^grad> + gamma^2 eta^2 (L/2) E|S^g|^2",
            r"\mathbb Ef(\mathbf x_{t_0+P})\le\mathbb Ef(\mathbf x_{t_0})-\gamma\eta\mathbb E\langle\nabla f"
            r"(\mathbf x_{t_0}),\mathbf S^\nabla\rangle+\tfrac{\gamma^2\eta^2L}2\mathbb E\|\mathbf S^g\|^2",
            number="C.13",
            claims="equation-c.16/Th1",
        ),
        ("equation-c.14", "equation", "Lemmas C.1 and C.2 put in", "Appendix C.3"): Body(
            "the squared distance of the window's mean gradient from grad f, by the spread, the drift and delta^2",
            number="C.14",
            claims="equation-c.16/Th4d",
        ),
        ("equation-c.15", "equation", "The squared update of a window", "Appendix C.3"): Body(
            "E|S^g|^2 <= 2 E|S^grad|^2 + 2 I P rho^2 sigma^2; here gamma eta <= 1/(2LIP) is used",
            r"\mathbb E\|\mathbf S^g\|^2\le2\mathbb E\|\mathbf S^\nabla\|^2+2IP\rho^2\sigma^2",
            number="C.15",
            claims="equation-c.16/Th5b equation-c.16/Th7",
            note="Step (b) of it uses that the noise is independent across clients.",
        ),
        ("rate-after-corollary-4.3", "remark", "Rate for a fixed P", "after Corollary 4.3"): Body(
            "O(sigma rho/sqrt(I T) + (1 + sigma^2)/T), and O(1/T) where sigma = 0", claims="corollary-4.3[printed]"
        ),
        ("rate-after-corollary-4.8", "remark", "Rate with S participants", "after Corollary 4.8"): Body(
            "with rho = 1/sqrt(S) the dominant term is (1 + sigma^2)/sqrt(S I T)",
            claims="table-1-independent[printed] table-1-mixing[printed]",
        ),
        ("speed-up", "remark", "Linear speed-up in the participants", "Section 5"): Body(
            "the factor is 1/rho^2: S for S participants of equal weight, and S_min where at least S_min take part",
            claims="corollary-4.3[printed]",
            note="With at least S_min participants of equal weight, sum_n (q_t^n)^2 <= 1/S_min = rho^2.",
        ),
        ("table-1", "remark", "Dominant terms for large T", "Table 1"): Body(
            'rho = 1/sqrt(S); "other variables" are ignored',
            note="The rows are results of their own: table-1-regularized, -ergodic, -mixing, -independent, -yan, -gu.",
        ),
        ("table-d.1", "remark", "Best local step sizes after the initial phase", "Table D.1"): Body(
            "FashionMNIST and CIFAR-10: wait-minibatch 0.1, 0.05; wait-full 0.1, 0.05; Algorithm 1 without "
            "amplification (eta = 1) 1e-5, 5e-5; with amplification (eta = 10, P = 500) 1e-5, 5e-6",
            note="The grid is {1, 0.1, 0.01, 0.001, 0.0001} times the initial rate, 0.1 and 0.05.",
        ),
    }
)
