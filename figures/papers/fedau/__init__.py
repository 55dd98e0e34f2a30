"""The figures and tables of Wang & Ji (2024), FedAU, redrawn from our own runs; its claims against what we measured."""
