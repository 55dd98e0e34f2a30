"""Statements of Wang & Ji (2024) besides their results: the problem, assumptions, definitions, algorithms, lines."""

from fedbounds.bounds.theory.statement import Body, PaperStatements

PAPER = PaperStatements("fedau", "Wang & Ji 2024")

PROBLEM = PAPER.table(
    {
        ("objective", "definition", "The objective", "Section 3"): Body(
            "f(x) = (1/N) sum_n F_n(x), to be minimized over x in R^d",
            r"f(\mathbf x)=\frac1N\sum_{n=1}^NF_n(\mathbf x)",
            number="1",
        ),
        ("weighted-objective", "equation", "Objectives with other weights", "Appendix A.1"): Body(
            "F_n = (q_n N/Gamma) Fhat_n with Gamma = sum_n q_n makes f the weighted mean (1/Gamma) sum_n q_n Fhat_n",
            r"f(\mathbf x)=\frac1\Gamma\sum_{n=1}^Nq_n\hat F_n(\mathbf x),\qquad "
            r"F_n=\frac{q_nN}\Gamma\hat F_n,\ \Gamma=\sum_{n=1}^Nq_n",
            number="A.1.1",
            note="The constants L, sigma and delta of every result are then those of the scaled F_n.",
        ),
        ("problem-1", "definition", "Problem 1: the goal of the weights", "Section 3"): Body(
            "choose omega_t^n from the past so that its average over the rounds is about the inverse of the client's "
            "share of rounds: (1/T) sum_t omega_t^n ~ 1/((1/T) sum_t 1_t^n)",
            r"\frac1T\sum_{t<T}\omega_t^n\approx\Big(\frac1T\sum_{t<T}\mathbb 1_t^n\Big)^{-1}",
            note="The average interval is T/M only if the client takes part in the last round: erratum "
            "rounds-per-participation.",
        ),
        ("second-moment", "definition", "Q, the second moment of the weights", "Theorem 2"): Body(
            "Q = max_(0 <= t <= T-1) (1/N) sum_n p_n (omega_t^n)^2",
            r"Q=\max_{0\le t\le T-1}\frac1N\sum_{n=1}^Np_n(\omega_t^n)^2",
            note="Random where the weights are; here Q is a bound on every path: erratum random-second-moment.",
        ),
    }
)
ALGORITHMS = PAPER.table(
    {
        ("algorithm-1", "definition", "FedAvg with pluggable aggregation weights", "Section 3, Algorithm 1"): Body(
            "participants take I local SGD steps of size gamma from x_t and send their update Delta_t^n; with weights "
            "made of who took part before round t, x_(t+1) = x_t + (eta/N) sum_n omega_t^n Delta_t^n, divided by N "
            "whoever takes part",
            r"\mathbf x_{t+1}=\mathbf x_t+\frac\eta N\sum_{n=1}^N\omega_t^n\Delta_t^n",
            note="In a round without participants the formula leaves the model as it is.",
        ),
        ("algorithm-2", "definition", "FedAU's weights", "Section 3, Algorithm 2"): Body(
            "omega_t^n is the mean of the client's completed participation intervals, each cut off at K rounds; it is "
            "1 until the first is complete. Algorithm 1 with these weights is FedAU",
            note="The last interval counts when the client takes part or K rounds have passed; its counter is then "
            "reset.",
        ),
        ("algorithm-3", "definition", "The equivalent algorithm of the proofs", "Appendix B, Algorithm 3"): Body(
            "all clients compute their update, and x_(t+1) = x_t + (eta/N) sum_n 1_t^n omega_t^n Delta_t^n: the same "
            "law of x_t as Algorithm 1",
            r"\mathbf x_{t+1}=\mathbf x_t+\frac\eta N\sum_{n=1}^N\mathbb 1_t^n\omega_t^n\Delta_t^n",
        ),
        ("grouped-clients", "remark", "Clients that participate once", "Section 3"): Body(
            "where a client takes part only once, clients that are alike may share one set of Algorithm 2's variables, "
            "M, S and omega, as a group",
            note="Not analyzed and not run in the paper, nor here.",
        ),
        ("weights-at-the-client", "remark", "Weights that the clients apply", "Section 3"): Body(
            "a client can multiply its own update by omega_t^n before it sends it, so that secure aggregation and "
            "differential "
            "privacy remain possible; an exponentially weighted mean may replace the mean of the intervals",
            note="Neither variant is analyzed in the paper.",
        ),
    }
)
ASSUMPTIONS = PAPER.table(
    {
        ("assumption-1", "assumption", "Smoothness", "Assumption 1"): Body(
            "|grad F_n(x) - grad F_n(y)| <= L |x - y| for all x, y and n",
            r"\|\nabla F_n(\mathbf x)-\nabla F_n(\mathbf y)\|\le L\|\mathbf x-\mathbf y\|",
            number="3",
        ),
        ("assumption-2", "assumption", "Unbiased gradients of bounded variance", "Assumption 2"): Body(
            "E[g_n(x) | x] = grad F_n(x) and E[|g_n(x) - grad F_n(x)|^2 | x] <= sigma^2 for all x and n; the noise is "
            "independent between rounds, clients and local steps",
            r"\mathbb E[\mathbf g_n(\mathbf x)|\mathbf x]=\nabla F_n(\mathbf x),\quad "
            r"\mathbb E\big[\|\mathbf g_n(\mathbf x)-\nabla F_n(\mathbf x)\|^2\big|\mathbf x\big]\le\sigma^2",
            number="4",
        ),
        ("assumption-3", "assumption", "Bounded gradient divergence", "Assumption 3"): Body(
            "|grad F_n(x) - grad f(x)|^2 <= delta^2 for all x and n",
            r"\|\nabla F_n(\mathbf x)-\nabla f(\mathbf x)\|^2\le\delta^2",
            number="5",
            note="The proofs use it at the x_t only.",
        ),
        ("assumption-4", "assumption", "Independent participation", "Assumption 4"): Body(
            "1_t^n is Bernoulli with probability p_n, independent between rounds and clients and of the gradient noise",
            r"\mathbb 1_t^n\sim\mathrm{Bernoulli}(p_n)",
        ),
        ("assumption-5", "assumption", "Either nearly optimal weights or a bounded gradient", "Assumption 5"): Body(
            "Option 1, nearly optimal weights: (1/N) sum_n (p_n omega_t^n - 1)^2 <= 1/81 for all t, and then Psi_G = "
            "0. Option 2, bounded global gradient: |grad f(x)|^2 <= G^2 for all x, and then Psi_G = G^2",
            r"\frac1N\sum_{n=1}^N(p_n\omega_t^n-1)^2\le\frac1{81}\quad\text{or}\quad\|\nabla f(\mathbf x)\|^2\le G^2",
            claims="theorem-2-option-1/T0 theorem-2/T0",
            note="8/(9 p_n) <= omega_t^n <= 10/(9 p_n) is enough for Option 1. FedAU's own weights meet it almost "
            "never: repair option-1-is-vacuous-for-fedau.",
        ),
    }
)
LINES = PAPER.table(
    {
        ("equation-b.1.1", "equation", "Jensen's inequality", "Appendix B.1"): Body(
            "|(1/M) sum_m z_m|^2 <= (1/M) sum_m |z_m|^2 and |sum_m z_m|^2 <= M sum_m |z_m|^2",
            r"\Big\|\sum_{m=1}^M\mathbf z_m\Big\|^2\le M\sum_{m=1}^M\|\mathbf z_m\|^2",
            number="B.1.1",
            claims="lemma-b.3.2/S2",
        ),
        ("equation-b.1.2", "equation", "Young's inequality for a product", "Appendix B.1"): Body(
            "<z_1, z_2> <= (rho/2) |z_1|^2 + (1/(2 rho)) |z_2|^2 for rho > 0",
            r"\langle\mathbf z_1,\mathbf z_2\rangle\le\frac\rho2\|\mathbf z_1\|^2+\frac1{2\rho}\|\mathbf z_2\|^2",
            number="B.1.2",
            claims="lemma-b.3.3/S6",
        ),
        ("equation-b.1.3", "equation", "Young's inequality for a sum, Peter-Paul", "Appendix B.1"): Body(
            "|z_1 + z_2|^2 <= (1 + b) |z_1|^2 + (1 + 1/b) |z_2|^2 for b > 0",
            r"\|\mathbf z_1+\mathbf z_2\|^2\le(1+b)\|\mathbf z_1\|^2+\Big(1+\frac1b\Big)\|\mathbf z_2\|^2",
            number="B.1.3",
            claims="lemma-b.3.2/S1",
        ),
        ("equation-b.1.4", "equation", "Variance and squared mean", "Appendix B.1"): Body(
            "E|z|^2 = E|z - E z|^2 + |E z|^2",
            r"\mathbb E\|\mathbf z\|^2=\mathbb E\|\mathbf z-\mathbb E\mathbf z\|^2+\|\mathbb E\mathbf z\|^2",
            number="B.1.4",
            claims="limit/interval-bias-and-variance",
        ),
        ("definition-b.3.1", "definition", "The objective of the general proof", "Definition B.3.1"): Body(
            "f~ = sum_n varphi_n F_n with varphi_n >= 0 and sum_n varphi_n = 1",
            r"\tilde f(\mathbf x)=\sum_{n=1}^N\varphi_nF_n(\mathbf x)",
            number="B.3.1",
        ),
        ("equation-b.4.1", "definition", "What constant weights minimize", "Appendix B.4"): Body(
            "h = (1/P) sum_n omega_n p_n F_n with P = sum_n omega_n p_n",
            r"h(\mathbf x)=\frac1P\sum_{n=1}^N\omega_np_nF_n(\mathbf x),\qquad P=\sum_{n=1}^N\omega_np_n",
            number="B.4.1",
            claims="theorem-b.4.1/H2a",
        ),
        ("equation-b.5.2", "equation", "One round under Option 2", "Appendix B.5"): Body(
            "Lemma B.5.1 under the caps of Theorem 2 and Option 2: beside the error terms the gradient keeps 1/8 of "
            "its square",
            number="B.5.2",
            claims="theorem-2/T2 theorem-2/T4",
            note="Lemma B.5.1 is false as printed; the step is proved from its repair.",
        ),
        ("equation-b.5.4", "equation", "One round under Option 1", "Appendix B.5"): Body(
            "Lemma B.5.1 under the caps of Theorem 2 and Option 1: beside the error terms the gradient keeps 1/16 of "
            "its square",
            number="B.5.4",
            claims="theorem-2-option-1/T2 theorem-2-option-1/T4",
            note="Lemma B.5.1 is false as printed; the step is proved from its repair.",
        ),
        ("known-second-moment", "equation", "Q with known rates", "Appendix A.3"): Body(
            "with omega_t^n = 1/p_n, Q = (1/N) sum_n 1/p_n, and N/S where every p_n is S/N",
            r"Q=\frac1N\sum_{n=1}^N\frac1{p_n}",
            claims="appendix-a.3-unequal/A1 appendix-a.3/E1 limit/known-weights-second-moment",
            note="The bound with this Q is fedau/appendix-a.3-unequal, and with N/S fedau/appendix-a.3.",
        ),
        ("equation-c.6.1", "equation", "Participation rates of the experiments", "Appendix C.6"): Body(
            "p_n = <kappa_n, q>/lambda with lambda = 1/(C mu): kappa_n the client's mix of C classes, q one Dirichlet "
            "draw, mu the mean rate; then p_n is raised to 0.02",
            r"p_n=\frac1\lambda\langle\kappa_n,\mathbf q\rangle,\qquad\lambda=\frac1{C\mu}",
            number="C.6.1",
            note="It exceeds 1 for some clients with 100 classes: erratum rate-above-one.",
        ),
    }
)
STATEMENTS = (*PROBLEM, *ALGORITHMS, *ASSUMPTIONS, *LINES)
