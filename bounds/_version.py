"""The version, of the front door and of all floors."""

__version__ = "0.1.0"
