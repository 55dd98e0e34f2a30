"""A Dask cluster as an executor of sweeps.

Dask sends functions as pickles and runs what is sent: connect only to schedulers that you trust.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

from fedbounds.bounds.errors import FedboundsError

SECONDS = 5  # that a scheduler has to answer


class Scheduler(NamedTuple):
    """A scheduler that answers: its address, how many workers have joined it, and how many threads they have in all."""

    address: str
    workers: int
    threads: int


def find_scheduler(address: str) -> Scheduler:
    """Ask at an address whether a scheduler is there."""
    import distributed.core
    from distributed.security import Security

    async def ask() -> Any:
        async with distributed.core.rpc(address, connection_args=Security().get_connection_args("client")) as there:
            return await there.identity()

    try:
        with _silence():
            found = asyncio.run(asyncio.wait_for(ask(), SECONDS))
    except Exception as error:  # whatever else listens there may answer anything
        reason = " ".join(str(error).split()) or f"no answer in {SECONDS} seconds"
        raise FedboundsError(
            f"no Dask scheduler at {address!r}: {reason[:200]}; `dask scheduler` starts one and prints its address"
        ) from error
    if found.get("type") != "Scheduler":
        there = f"; its scheduler is {found['scheduler']}" if "scheduler" in found else ""
        raise FedboundsError(f"at {address!r} is no Dask scheduler but a {str(found.get('type')).lower()}{there}")
    return Scheduler(address, found["n_workers"], found["total_threads"])


@contextmanager
def cluster_executor(scheduler: Scheduler) -> Iterator[Executor]:
    """The executor of a cluster; what it still does is given up when the context ends."""
    from distributed import Client

    with _silence():
        try:
            client = Client(scheduler.address, timeout=SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise FedboundsError(f"no Dask scheduler at {scheduler.address!r}: {error}") from error
        try:
            yield client.get_executor(pure=False)
        finally:
            client.close(timeout=SECONDS)


@contextmanager
def _silence() -> Iterator[None]:
    """Disable the log messages of Dask; errors are reported as FedboundsError."""
    names = ("distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed.")))
    logs = [log for log in map(logging.getLogger, names) if not log.disabled]
    for log in logs:
        log.disabled = True
    try:
        yield
    finally:
        for log in logs:
            log.disabled = False
