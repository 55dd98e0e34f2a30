"""TDCD by messages: hubs and clients that hold only their own data and exchange bytes."""

from tdcd_deployment.deployment import Deployment, silos_of
from tdcd_deployment.messages import Delivery
from tdcd_deployment.nodes import Holding, Silo

__all__ = ["Delivery", "Deployment", "Holding", "Silo", "silos_of"]
