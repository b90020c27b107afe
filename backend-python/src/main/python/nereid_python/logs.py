"""Standard streams and Python's ``logging``."""

import logging
import sys
from typing import Any

INFO, WARNING, ERROR, VERBOSE = range(4)


def configure_streams() -> None:
    """Makes standard output and error UTF-8, written line by line."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        except (AttributeError, ValueError, OSError):
            pass
    try:
        # Also for native code.
        import ctypes

        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, 0)
    except (ImportError, OSError, ValueError, AttributeError):
        pass


def configure_logging(runner: Any) -> None:
    """Sends records to the server that handlers of ``logging`` would write to standard error or output, with their level."""
    emit = logging.StreamHandler.emit
    streams = (sys.stderr, sys.stdout)
    last_resort = type(logging.lastResort)

    def emit_to_server(self: Any, record: logging.LogRecord) -> None:
        own = type(self) in (logging.StreamHandler, last_resort) and any(self.stream is stream for stream in streams)
        if not own or not runner.log_ready:
            emit(self, record)
            return
        try:
            level = record.levelno
            number = ERROR if level >= 40 else WARNING if level >= 30 else INFO if level >= 20 else VERBOSE
            if runner.log_mask & 1 << number:
                runner.log(number, record.pathname, record.lineno, self.format(record))
        except Exception:
            self.handleError(record)

    logging.StreamHandler.emit = emit_to_server  # type: ignore[method-assign]
