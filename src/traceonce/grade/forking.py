"""A process that does nothing but fork on request: the loop of the zygote and of the judge's processes. Plain standard library."""

import os
import select
import socket
from collections.abc import Callable

_MOST_DESCRIPTORS = 8


def serve(
    control: socket.socket, ask: Callable[[bytes, list[int]], int | None], finish: Callable[[], None] = lambda: None
) -> None:
    """Call `ask` with each packet on `control` and the descriptors that it brought, and reap the process whose id it returns, if any.

    The descriptors are closed here after that. When `control` is closed on the other side: `finish`, and wait for all processes.
    """
    processes: dict[int, int] = {}  # by pidfd, which turns readable when the process ends
    while True:
        ready, _, _ = select.select([control.fileno(), *processes], [], [])
        for ended in processes.keys() & set(ready):
            os.waitpid(processes.pop(ended), 0)
            os.close(ended)
        if control.fileno() not in ready:
            continue
        packet, descriptors, _, _ = socket.recv_fds(control, 65536, _MOST_DESCRIPTORS)
        if not packet:
            break
        process = ask(packet, descriptors)
        if process is not None:
            processes[os.pidfd_open(process)] = process
        for descriptor in descriptors:
            os.close(descriptor)
    finish()
    for process in processes.values():
        os.waitpid(process, 0)
