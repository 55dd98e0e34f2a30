"""What stands before the site: finished Markdown and HTML, which any generator can take.

`PYTHONPATH=docs python -m prebuild FOLDER` writes them: pages whose formulas are MathML and in which the lines that
stand for many are written out, a page for each result and each module, the explorer, and the settings of the generator.
"""
