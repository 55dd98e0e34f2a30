"""Finds the packages of the three layers beside `fedbounds/`.

In a checkout `fedbounds/` holds links to them for editors. Where a checkout has no links (`core.symlinks=false`, as on
Windows) they are small text files; the packages are those of the folders either way.
"""

from setuptools import find_packages, setup

LAYERS = ("bounds", "empirical", "figures")
inside = [name for name in find_packages("fedbounds") if name.partition(".")[0] not in LAYERS]
layers = [name for layer in LAYERS for name in (layer, *(f"{layer}.{name}" for name in find_packages(layer)))]

setup(
    packages=["fedbounds", *(f"fedbounds.{name}" for name in (*inside, *layers))],
    package_dir={f"fedbounds.{layer}": layer for layer in LAYERS},
)
