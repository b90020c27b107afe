"""The end of the processes that a model has started and that have left the process group of its process.

The server kills the group when the process has ended. A process with a session of its own is not in it, and would stay.
"""

import atexit
import os
import signal
import time
from typing import Dict, List, Tuple

_SECONDS = 1.0
_PR_SET_CHILD_SUBREAPER = 36


def end_at_exit() -> None:
    """Ends these processes at the orderly end of this one. Called before the model can register functions: they run first."""
    atexit.register(_at_exit, os.getpid())


def _at_exit(process: int) -> None:
    if os.getpid() == process:  # not in one that the model has forked
        end_all()


def end_all() -> None:
    """Kills the descendants of this process that are not in its group, and waits for their end for a second at most."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return  # this process has no children
    except OSError:
        pass
    _adopt_orphans()
    end = time.monotonic() + _SECONDS
    while True:
        alive = 0
        for process, started, ended in _descendants():
            alive += not ended
            _kill(process, started)
        if not alive or time.monotonic() >= end:
            return
        time.sleep(0.005)


def _adopt_orphans() -> None:
    """Makes this process the parent of its descendants whose own parents end from now on, so that they can be found."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # then most are found
        pass


def _descendants() -> List[Tuple[int, bytes, bool]]:
    """Returns the descendants outside of the group: the process, when it was started, and whether it has ended."""
    children: Dict[int, List[Tuple[int, int, bytes, bool]]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            fields = _stat(int(name))
            if fields:
                ended = fields[0] in (b"Z", b"X")
                children.setdefault(int(fields[1]), []).append((int(name), int(fields[2]), fields[19], ended))
    group = os.getpgrp()
    found = []
    parents = [os.getpid()]
    while parents:
        for process, its_group, started, ended in children.pop(parents.pop(), ()):
            parents.append(process)
            if its_group != group:
                found.append((process, started, ended))
    return found


def _stat(process: int) -> List[bytes]:
    """Returns the fields of a process behind its name: state, parent, group and so on; none if it is gone."""
    try:
        with open("/proc/%d/stat" % process, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _kill(process: int, started: bytes) -> None:
    """Kills a process, and none that has got its number meanwhile."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):  # an old kernel, or a Python that was built for one
        descriptor = -1
    try:
        fields = _stat(process)
        if not fields or fields[19] != started:
            return
        if descriptor >= 0:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGKILL)
    except OSError:  # it has ended, or belongs to another user
        pass
    finally:
        if descriptor >= 0:
            os.close(descriptor)
