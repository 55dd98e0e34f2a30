"""The results of Wang & Ji (2024) on instances with exact moments."""
