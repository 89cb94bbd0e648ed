"""The language server as a process that starts scripted daemons instead of real ones.

python -m tests.support.lsp_server [arguments of tests.support.scripted_room]
"""

import sys
from functools import partial

from lsp.backend import connect_daemon
from lsp.launch import serve

if __name__ == "__main__":
    command = (sys.executable, "-P", "-m", "tests.support.scripted_room", *sys.argv[1:])
    serve(partial(connect_daemon, command=command))
