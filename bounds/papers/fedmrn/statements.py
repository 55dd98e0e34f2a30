"""Statements of Li et al. (2024) besides their results: problem, algorithm, assumptions, lines of proofs."""

from fedbounds.bounds.theory.statement import Body, PaperStatements

PAPER = PaperStatements("fedmrn", "Li et al. 2024", "Appendix B")

PROBLEM = PAPER.table(
    {
        ("objective", "definition", "The objective", "Section 3"): Body(
            "F(w) = sum_k p_k F_k(w), to be minimized over w in R^d; p_k is the share of client k in the data",
            r"F(\mathbf w)=\sum_{k=1}^Np_kF_k(\mathbf w)",
            number="1",
            note="The analysis has p_k = 1/N.",
        ),
        ("fedavg", "definition", "FedAvg", "Section 3"): Body(
            "K clients take S steps of stochastic gradient descent on F_k(w + u) from u = 0, and the server adds the "
            "mean of their u, weighted by p_k among the participants",
            number="2 3",
        ),
        ("heterogeneity", "definition", "Gamma", "Theorem 1"): Body(
            "Gamma = F* - sum_k p_k F_k*, which is 0 if and only if one w minimizes every F_k",
            r"\Gamma=F^*-\sum_kp_kF_k^*",
        ),
    }
)
ALGORITHM = PAPER.table(
    {
        ("equation-4", "equation", "Not restated", "main text, before (5)"): Body("nothing here uses it", number="4"),
        ("aggregation", "equation", "What the server adds", "Section 4"): Body(
            "the noise of every participant, made anew from its seed, times its mask, weighted by p_k among them",
            r"\mathbf w^{r+1}=\mathbf w^r+\frac{\sum_{k\in\mathcal C}p_k\,\mathcal G(s_k)\odot\mathbf m_k}"
            r"{\sum_{k\in\mathcal C}p_k}",
            number="5",
        ),
        ("binary-masks", "definition", "Stochastic binary masks", "Section 4"): Body(
            "m = 1 with probability clip(u/n, 0, 1), else 0",
            r"\Pr(m=1)=\operatorname{clip}\Big(\frac un,0,1\Big)",
            number="6",
            claims="repair/binary-masks-are-biased",
            note="A mean of u where u/n is in [0, 1]: noise of the other sign leaves the coordinate where it is.",
        ),
        ("signed-masks", "definition", "Stochastic signed masks", "Section 4"): Body(
            "m = 1 with probability clip((u + n)/(2n), 0, 1), else -1",
            r"\Pr(m=1)=\operatorname{clip}\Big(\frac{u+n}{2n},0,1\Big)",
            number="7",
            claims="repair/the-sign-of-the-noise-is-lost",
            note="A mean of u where |u| <= |n|.",
        ),
        ("stochastic-masking", "definition", "Stochastic masking", "Section 4"): Body(
            "S(u, n) = n m with a mask m drawn for u and n",
            r"\mathcal S(\mathbf u,\mathbf n)=\mathbf n\odot\mathcal M(\mathbf u,\mathbf n)",
            number="8",
            claims="theorem-2-masks/S8 erratum/masking-error-at-zero",
        ),
        ("straight-through", "equation", "Straight-through gradient", "Section 4"): Body(
            "the gradient is taken at the masked update and applied to the update that is not",
            r"\mathbf u\leftarrow\mathbf u-\eta\,\partial F_k(\mathbf w+\hat{\mathbf u})/\partial\hat{\mathbf u}",
            number="9",
        ),
        ("progressive-masking", "definition", "Progressive masking", "Section 4"): Body(
            "in the tau-th of S local steps a coordinate is masked with probability tau/S and else clipped to its "
            "noise",
            r"\hat{\mathbf u}=(1-P)\odot\bar{\mathbf u}+P\odot\mathcal S(\mathbf u,\mathbf n),\quad"
            r"P\sim\operatorname{Bern}(\tau/S)",
            number="10",
            claims="proposition-1/P1 erratum/progressive-masking-squares-its-probability",
        ),
        ("analyzed-algorithm", "definition", "The algorithm of the analysis", "Appendix B"): Body(
            "all N clients run: v_k = w_k - eta_t grad F_k(x_k, xi), x_k = w_bar_{t0} + S(w_k - w_bar_{t0}, G(s_k)); "
            "every S iterations all w_k become the mean over K clients of w_bar_{t0} + S(v_k - w_bar_{t0}, G(s_k))",
            r"\mathbf x_k^t=\bar{\mathbf w}_{t_0}+\mathcal S(\mathbf w_k^t-\bar{\mathbf w}_{t_0},\mathcal G(s_k^t))",
            number="13 14 15",
            claims="wording/fresh-noise",
        ),
    }
)
ASSUMPTIONS = PAPER.table(
    {
        ("assumption-1", "assumption", "Smoothness", "Assumption 1"): Body(
            "F_k(v) <= F_k(w) + <v - w, grad F_k(w)> + L/2 |v - w|^2 for all v, w and k",
            r"F_k(\mathbf v)\le F_k(\mathbf w)+(\mathbf v-\mathbf w)^\top\nabla F_k(\mathbf w)"
            r"+\frac L2\|\mathbf v-\mathbf w\|^2",
            claims="erratum/one-sided-smoothness",
        ),
        ("assumption-2", "assumption", "Bounded noise", "Assumption 2"): Body(
            "E|grad F_k(w_k^t, xi) - grad F_k(w_k^t)| <= sigma",
            r"\mathbb E\|\nabla F_k(\mathbf w_k^t,\xi)-\nabla F_k(\mathbf w_k^t)\|\le\sigma",
            claims="wording/first-moments-for-second-moments wording/gradients-where-they-are-taken",
        ),
        ("assumption-3", "assumption", "Bounded gradients", "Assumption 3"): Body(
            "E|grad F_k(w_k^t, xi)| <= G; the text says that the squared norm is bounded",
            r"\mathbb E\|\nabla F_k(\mathbf w_k^t,\xi)\|\le G",
            claims="wording/gradients-where-they-are-taken erratum/hypotheses-exclude-each-other",
        ),
        ("assumption-4", "assumption", "Relative masking error", "Assumption 4"): Body(
            "E|S(x, G(s)) - x| <= q |x|",
            r"\mathbb E\|\mathcal S(\mathbf x,\mathcal G(s))-\mathbf x\|\le q\|\mathbf x\|",
            claims="erratum/masking-error-at-zero erratum/first-moment-of-masks",
        ),
        ("assumption-5", "assumption", "Strong convexity", "Assumption 5"): Body(
            "every F_k is mu-strongly convex", claims="wording/u-strongly"
        ),
        ("remark-1", "remark", "Special cases", "Remark 1"): Body(
            "q = 0 gives the rate of FedAvg (Li et al. 2020); K = N and S = 1 that of SignSGD; all three that of SGD",
            claims="limit/remark-1-fedavg limit/remark-1-sgd limit/remark-1-one-step-of-all-clients-nonconvex "
            "erratum/one-local-step-is-not-sign-sgd",
        ),
    }
)
LINES = PAPER.lines(
    {
        ("20", "The error of masks and cohort is uncorrelated with the rest"): Body(
            "E|w_bar_{t+1} - w*|^2 = E|w_bar_{t+1} - v_bar_{t+1}|^2 + E|v_bar_{t+1} - w*|^2",
            r"\Delta_{t+1}=\mathbb E\|\bar{\mathbf w}_{t+1}-\bar{\mathbf v}_{t+1}\|^2"
            r"+\mathbb E\|\bar{\mathbf v}_{t+1}-\mathbf w^*\|^2",
            claims="theorem-1/S22",
        ),
        ("21", "One iteration"): Body(
            "Delta_{t+1} <= (1 - eta_t mu) Delta_t + eta_t^2 B",
            r"\Delta_{t+1}\le(1-\eta_t\mu)\Delta_t+\eta_t^2B",
            claims="theorem-1/S23",
        ),
        ("22", "Induction"): Body(
            "Delta_t <= v/(gamma + t) with v = max(beta^2 B/(beta mu - 1), (gamma + 1) Delta_1)",
            r"\Delta_t\le\frac v{\gamma+t}",
            claims="theorem-1/S24 wording/beta",
        ),
        ("23", "From distance to gap"): Body(
            "E F(w_bar_t) - F* <= L/2 Delta_t",
            r"\mathbb E[F(\bar{\mathbf w}_t)]-F^*\le\frac L2\Delta_t",
            claims="theorem-1/S26a",
        ),
        ("24", "The induction's constant at beta = 2/mu"): Body(
            "v <= 4 B/mu^2 + (gamma + 1) Delta_1, a sum for the larger of both",
            r"v\le\frac{4B}{\mu^2}+(\gamma+1)\Delta_1",
            claims="theorem-1/V1 theorem-1/V2 theorem-1/11",
            note="The form sharp keeps the larger of both.",
        ),
        ("29", "Theorem 2 before its step size"): Body(
            "(26) averaged over the iterations", claims="theorem-2/29-printed wording/constant-step"
        ),
        ("31", "Not restated"): Body(
            "nothing here uses it", note="It stands between Theorem 2, (30), and Lemma 1, (32)."
        ),
        ("32", "Noise of the averaged gradient"): Body(
            "E|g_t - g_bar_t|^2 = sum_k p_k^2 E|grad F_k(x_k, xi) - grad F_k(x_k)|^2",
            r"\mathbb E\|\mathbf g_t-\bar{\mathbf g}_t\|^2=\sum_kp_k^2\mathbb E\|\nabla F_k(\mathbf x_k^t,\xi)"
            r"-\nabla F_k(\mathbf x_k^t)\|^2",
            claims="lemma-1/S1b",
        ),
        ("34", "Drift and masking error are uncorrelated"): Body(
            "E|w_bar_t - x_k|^2 = E|w_bar_t - w_k|^2 + E|w_k - x_k|^2",
            r"\mathbb E\|\bar{\mathbf w}_t-\mathbf x_k^t\|^2=\mathbb E\|\bar{\mathbf w}_t-\mathbf w_k^t\|^2"
            r"+\mathbb E\|\mathbf w_k^t-\mathbf x_k^t\|^2",
            claims="lemma-2/S5 wording/signs",
        ),
        ("35", "Drift"): Body(
            "E|w_bar_t - w_k|^2 <= E|w_k - w_bar_{t0}|^2 <= 4 eta_t^2 (S-1)^2 G^2",
            r"\mathbb E\|\bar{\mathbf w}_t-\mathbf w_k^t\|^2\le4\eta_t^2(S-1)^2G^2",
            claims="lemma-2/S6 lemma-2/S7b erratum/drift-of-one-client",
            note="True of the mean over the clients.",
        ),
        ("36", "Masking error"): Body(
            "E|w_k - x_k|^2 <= q^2 E|w_k - w_bar_{t0}|^2",
            r"\mathbb E\|\mathbf w_k^t-\mathbf x_k^t\|^2\le q^2\mathbb E\|\mathbf w_k^t-\bar{\mathbf w}_{t_0}\|^2",
            claims="lemma-2/S8",
        ),
        ("38 39", "What a synchronization changes"): Body(
            "E w_bar_{t+1} = v_bar_{t+1}, and E|w_bar_{t+1} - v_bar_{t+1}|^2 is the error of the masks and that of the "
            "cohort, which are uncorrelated",
            claims="lemma-3/S11a lemma-3/S12 wording/expectations",
        ),
        ("40", "Masking error of the upload"): Body(
            "at most q^2/K times the mean of E|v_k - w_bar_{t0}|^2",
            r"\frac1{K^2}\mathbb E\sum_{k\in\mathbb C}\|\mathcal S(\mathbf v_k)-\mathbf v_k\|^2"
            r"\le\frac4Kq^2\eta_t^2S^2G^2",
            claims="lemma-3/S11 lemma-3/S8v",
        ),
        ("41", "Sampling error"): Body(
            "the mean over K of N clients without replacement has (N-K)/(K(N-1)) of the variance between clients",
            r"\frac{N-K}{K(N-1)}\frac1N\sum_k\|\mathbf v_k-\bar{\mathbf v}\|^2",
            claims="lemma-3/S10",
        ),
        ("44 45", "The distance after a step, expanded"): Body(
            "|v_bar_{t+1} - w*|^2 in the distance of w_bar_t - eta_t g_bar_t, the noise, whose product with it has "
            "mean 0, and -2 eta_t <w_bar_t - w*, g_bar_t> + eta_t^2 |g_bar_t|^2",
            claims="lemma-4/S20a",
        ),
        ("46", "Gradient and gap"): Body(
            "|grad F_k(x)|^2 <= 2L (F_k(x) - F_k*)",
            r"\|\nabla F_k(\mathbf x)\|^2\le2L(F_k(\mathbf x)-F_k^*)",
            claims="lemma-4/S13 lemma-4/S19c",
        ),
        ("48", "The product, split at the masked models"): Body(
            "<w_bar - w*, g_bar> = mean of <w_bar - x_k, grad F_k(x_k)> + <x_k - w*, grad F_k(x_k)>",
            claims="lemma-4/S15a",
        ),
        ("49", "Young's inequality"): Body(
            "-2 <w_bar - x_k, grad F_k(x_k)> <= |w_bar - x_k|^2/eta_t + eta_t |grad F_k(x_k)|^2", claims="lemma-4/S15"
        ),
        ("50", "Strong convexity"): Body(
            "-<x_k - w*, grad F_k(x_k)> <= -(F_k(x_k) - F_k(w*)) - mu/2 |x_k - w*|^2", claims="lemma-4/S16"
        ),
        ("51 52", "One step, collected, and its value gap"): Body(
            "C = 2 eta_t^2 L mean of (F_k(x_k) - F_k*) and -2 eta_t mean of (F_k(x_k) - F_k(w*)), twice the first; "
            "with gamma_t = 2 eta_t (1 - 2 L eta_t) it is -gamma_t mean of (F_k(x_k) - F*) + 4 L eta_t^2 Gamma",
            r"C=-\gamma_t\frac1N\sum_k(F_k(\mathbf x_k)-F^*)+4L\eta_t^2\Gamma",
            claims="lemma-4/S13 lemma-4/S20",
            note="The line after (51) is said of every client, which is false of one alone (drift-of-one-client); (19) "
            "holds without it.",
        ),
        ("53", "The gap at masked models"): Body(
            "mean of (F_k(x_k) - F*) >= (1 - eta_t L)(F(w_bar) - F*) - eta_t L Gamma - mean of |x_k - w_bar|^2/(2 "
            "eta_t)",
            claims="lemma-4/S19",
        ),
        ("54", "The value gap"): Body(
            "C <= 6 L eta_t^2 Gamma + D_t", claims="lemma-4/S20 erratum/minimum-of-the-wrong-function"
        ),
        ("55 56", "The step with its value gap"): Body(
            "(54) put into the step: Lemma 4",
            claims="lemma-4/S20m lemma-4/19",
            note="Biased masks are covered: the part of the gap that (54) drops pays for the bias.",
        ),
        ("57 58 59", "One step down"): Body(
            "E F(w_bar_{t+1}) <= E F(v_bar_{t+1}) + L/2 E|w_bar_{t+1} - v_bar_{t+1}|^2, and the descent lemma for "
            "v_bar",
            claims="lemma-5/S27a lemma-5/S28",
        ),
        ("60", "A product as three squares"): Body(
            "2 <grad F(w_bar), g> = |grad F(w_bar)|^2 + |g|^2 - |grad F(w_bar) - g|^2",
            claims="lemma-5/S29",
            note="Here for the mean gradient, so that its noise stays apart.",
        ),
        ("61", "Gradients at masked models"): Body(
            "E|grad F(w_bar) - g_bar|^2 <= L^2 mean of E|w_bar - x_k|^2",
            claims="lemma-5/S30a lemma-5/S30b erratum/one-sided-smoothness",
        ),
        ("62 63 64 65 66", "One step down, collected"): Body(
            "(60) and (61) put into (59), with E|g|^2 = E|g_bar|^2 + E|g - g_bar|^2: Lemma 5",
            r"\Big(\frac{L\eta^2}2-\frac\eta2\Big)\mathbb E\|\mathbf g_t\|^2"
            r"+\frac\eta2\mathbb E\|\mathbf g_t-\bar{\mathbf g}_t\|^2"
            r"=\frac{L\eta^2-\eta}2\mathbb E\|\bar{\mathbf g}_t\|^2"
            r"+\frac{L\eta^2}2\mathbb E\|\mathbf g_t-\bar{\mathbf g}_t\|^2",
            claims="lemma-5/S31b lemma-5/26 wording/expectations wording/equation-numbers",
        ),
    }
)
STATEMENTS = (*PROBLEM, *ALGORITHM, *ASSUMPTIONS, *LINES)
