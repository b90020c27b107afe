"""Texts of Python exceptions: a short one for clients, a whole traceback for the log."""

import os
import sys
import traceback
from types import TracebackType
from typing import List, Optional, Tuple

_OWN_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
_OWN_FILES = tuple(
    os.path.join(os.path.dirname(_OWN_DIRECTORY), name + ".py")
    for name in ("triton_python_backend_utils", "c_python_backend_utils")
)


def is_own_file(filename: str) -> bool:
    """Returns whether a frame of this file belongs to the runner or to the import system."""
    return (
        filename.startswith(_OWN_DIRECTORY + os.sep)
        or filename in _OWN_FILES
        or filename.startswith("<frozen importlib")
        or filename.startswith("<frozen runpy")
    )


def short_text(error: BaseException) -> str:
    """Returns class, message and frames of an exception, the innermost frame first.

    The cause is not part of it, nor are frames of the runner.
    """
    try:
        message = str(error)
    except BaseException:  # a broken __str__ must not hide the error
        message = "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"
    text = type(error).__name__ + ": " + (message or "<EMPTY MESSAGE>")
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list) and notes:
        text += "\n__notes__ (len=%d):\n%s" % (len(notes), "\n".join(str(note) for note in notes))
    frames = model_frames(error.__traceback__)
    if frames:
        text += "\n\nAt:\n" + "".join("  %s(%d): %s\n" % frame for frame in reversed(frames))
    return text


def model_frames(trace: Optional[TracebackType]) -> List[Tuple[str, int, str]]:
    """Returns file, line and function of the frames that are not the runner's, the outermost first."""
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_own_file(code.co_filename):
            frames.append((code.co_filename, trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    return frames


def _without_own_frames(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    while trace is not None and is_own_file(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def long_text(error: BaseException) -> str:
    """Returns the traceback with all causes, without the frames of the runner at its start."""
    try:
        lines = traceback.format_exception(
            type(error), error, _without_own_frames(error.__traceback__), chain=True
        )
        return "".join(lines).rstrip("\n")
    except BaseException:  # a broken __str__ or __repr__
        return short_text(error)


def import_hint(error: BaseException) -> str:
    """Returns which Python and which environment an import failed in, or an empty text."""
    seen: List[Optional[BaseException]] = []
    cause: Optional[BaseException] = error
    while cause is not None and not isinstance(cause, ImportError) and cause not in seen:
        seen.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    if not isinstance(cause, ImportError):
        return ""
    return "Python %d.%d.%d at %s, environment %s" % (
        sys.version_info[:3] + (sys.executable or "?", sys.prefix)
    )
