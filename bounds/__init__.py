"""Theory as objects: every numbered result of five federated-learning papers, readable, evaluable, checkable."""
