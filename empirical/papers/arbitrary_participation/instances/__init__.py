"""The results and proofs of Wang & Ji (2022) on instances with exact moments."""
