"""Where a cluster is, and what to show to it: plain data, read without Dask."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from traceonce.errors import UsageError


@dataclass(frozen=True)
class Cluster:
    """Where to grade.

    **Arguments**

    - `address`: of the scheduler, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
    - `ca_file`, `certificate`, `key`: for TLS, all three or none; without them Dask's own configuration counts.
    """

    address: str
    ca_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """**Raises**: `UsageError` for what does not fit together."""
        parts = urlsplit(self.address)
        try:
            complete = bool(parts.hostname and parts.port)
        except ValueError:  # a port that is no number
            complete = False
        if parts.scheme not in ("tcp", "tls") or not complete:
            raise UsageError(f"{self.address!r} is no scheduler: write tcp://HOST:PORT or tls://HOST:PORT.")
        files = (self.ca_file, self.certificate, self.key)
        if any(files) and not all(files):
            raise UsageError("TLS takes all three of --tls-ca-file, --tls-cert and --tls-key.")
        if any(files) and parts.scheme != "tls":
            raise UsageError(f"{self.address} would not be encrypted: write tls:// where there are TLS files.")
        for file in files:
            if file is not None and not file.is_file():
                raise UsageError(f"There is no file {file}: name the TLS files of the cluster.")

    @property
    def exposed(self) -> bool:
        """Whether what is sent can be read, and answered, by others on the network."""
        parts = urlsplit(self.address)
        try:
            local = ipaddress.ip_address(parts.hostname or "").is_loopback
        except ValueError:
            local = parts.hostname == "localhost"
        return parts.scheme == "tcp" and not local
