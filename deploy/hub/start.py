"""Make or refresh the learner's desk in their home, then become the hub's single-user server on it.

The rules are those of `make learn`: what a learner changed is never written over. Further arguments go to the server.
"""

import os
import sys
from pathlib import Path

from traceonce.desk import copies
from traceonce.desk.session import account, find_checkout

NAME = "trace-once"
SERVER = "jupyterhub-singleuser"


def main(arguments: list[str]) -> None:
    desk = Path.home() / NAME
    new = not desk.exists()
    done = copies.refresh(desk, copies.sheets(find_checkout()))
    print("\n".join(account(done, desk, new=new)), file=sys.stderr, flush=True)
    start = f"/lab/tree/{copies.INDEX}"
    os.execvp(SERVER, [SERVER, f"--ServerApp.root_dir={desk}", f"--ServerApp.default_url={start}", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
