"""The figures of Wang & Ji (2022), redrawn from our own runs, and its claims against what we measured."""
