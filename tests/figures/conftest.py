"""Fixtures of the tests of figures."""

from tests.pictures import distinct_in_gray as distinct_in_gray
