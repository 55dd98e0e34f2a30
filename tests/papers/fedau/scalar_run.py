"""FedAvg with the weights 1/p_n on one coordinate, exactly."""

import numpy as np


def scalar_run(centers, p, gamma, eta, I, T, noise, start):
    """Mean E|grad f|^2 for F_n = (x - c_n)^2/2, weights 1/p_n, by the exact second moment of x - mean c."""
    c = centers - centers.mean()
    shrink = 1 - (1 - gamma) ** I
    jitter = gamma**2 * noise**2 * sum((1 - gamma) ** (2 * j) for j in range(I))
    mean, second, total = start, start**2, 0.0
    for _ in range(T):
        total += second
        spread = shrink**2 * (second - 2 * mean * c + c**2)
        variance = np.sum((1 / p - 1) * spread + jitter / p) * (eta / len(c)) ** 2
        mean, second = mean * (1 - eta * shrink), second * (1 - eta * shrink) ** 2 + variance
    return total / T
