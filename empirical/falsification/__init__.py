"""Instances that come near a bound: random, adversarial and extremal, and worst cases by semidefinite programs."""
