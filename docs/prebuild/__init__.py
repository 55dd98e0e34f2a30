"""Writes the finished pages of the site: `PYTHONPATH=docs python -m prebuild FOLDER`.

Formulas become MathML, lines such as `::: commands` generated text; each result and each module gets a page.
"""
