"""Which results cover a setting, and the best choice for a target."""
