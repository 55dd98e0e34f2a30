"""FedMRN: masked random noise, one bit for each parameter."""
