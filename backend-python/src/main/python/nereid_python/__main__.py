"""Entry of the process of a model instance. See PROTOCOL.md for its arguments.

The first part is kept to old syntax, so that an old Python can report its version.
"""

import os
import stat
import struct
import sys


def _argument(name):
    for argument in sys.argv[1:]:
        if argument.startswith("--" + name + "="):
            return argument[len(name) + 3:]
    return None


def _text(value):
    encoded = value.encode("utf-8", "replace")
    return struct.pack("<I", len(encoded)) + encoded


def hello(numpy_version, problem):
    """Returns the frame HELLO."""
    body = struct.pack("<HHIQ", 1, 0, 0, os.getpid())
    body += _text("%d.%d.%d" % sys.version_info[:3]) + _text(sys.executable or "") + _text(sys.prefix)
    body += _text(numpy_version) + _text(problem)
    body += _text(_argument("token") or "")
    body += b"\0" * (-(16 + len(body)) % 8)
    return struct.pack("<IBBHQ", 16 + len(body), 64, 0, 0, 0) + body


def _connect(address):
    import socket

    if address.startswith("fd:"):
        return socket.fromfd(int(address[3:]), socket.AF_UNIX, socket.SOCK_STREAM)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect("\0" + address[1:] if address.startswith("@") else address)
    return connection


def _remove(address):
    """Removes the path of a server that has gone, which would be left."""
    try:
        if stat.S_ISSOCK(os.lstat(address).st_mode):
            os.unlink(address)
            os.rmdir(os.path.dirname(os.path.abspath(address)))
    except OSError:  # also for an address that is no path
        pass


def _refuse(connection, problem):
    sys.stderr.write(problem + "\n")
    connection.sendall(hello("", problem))
    sys.exit(3)


def main():
    address = _argument("channel")
    if address is None:
        sys.stderr.write("usage: python3 nereid_python/__main__.py --channel=ADDRESS [--life=ADDRESS] ...\n")
        sys.exit(2)
    # The directory of this file must not be on the path: its modules are those of a package.
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        del sys.path[0]
    sys.path.insert(0, os.path.dirname(here))
    try:
        connection = _connect(address)
    except (OSError, IOError) as error:
        sys.stderr.write("cannot connect to the server at %s: %s\n" % (address, error))
        _remove(address)
        sys.exit(2)
    where = "Python %d.%d.%d at %s" % (sys.version_info[:3] + (sys.executable,))
    if sys.version_info < (3, 9):
        _refuse(connection, "%s is too old: the Python backend needs Python 3.9 or newer" % where)
    try:
        import numpy
    except BaseException as error:  # a NumPy for another processor or Python may raise anything
        _refuse(
            connection,
            "%s (environment %s) cannot import NumPy, which the Python backend needs: %s"
            % (where, sys.prefix, str(error) or type(error).__name__),
        )
    from nereid_python import runner

    sys.exit(
        runner.main(
            connection, address, _argument("life"), hello(numpy.__version__, ""), _argument("on-term") or "ignore",
            _argument("parent-death-signal"),
        )
    )


if __name__ == "__main__":
    main()
