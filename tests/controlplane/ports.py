"""Free TCP ports on loopback, which nobody else is handed before their program binds them.

Called by the control plane when it starts.
"""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that a program may listen on within the next minute.

    A connection is made to it and closed from our end, which leaves the port in TIME_WAIT: the
    system then gives it to no other process that asks for any port, while programs that ask
    for this one (with SO_REUSEADDR, as Go and Python servers do) get it.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, 0))
        listener.listen(1)
        port: int = listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)):
            accepted, _ = listener.accept()
            accepted.close()
    return port
