"""Texts of Python exceptions: a short one for clients, a whole traceback for the log."""

import os
import sys
import traceback
from types import TracebackType
from typing import Any, List, Optional, Set, Tuple

#: The most characters of a text for clients, of the message in it, and of a text for the log.
SHORT_LIMIT = 64 << 10
_MESSAGE_LIMIT = 48 << 10
LONG_LIMIT = 256 << 10
_UNAVAILABLE = "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"

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


def cut(text: str, limit: int, end: int = 0) -> str:
    """Returns a text of at most so many characters: of a longer one the start, and the last ``end`` characters."""
    if len(text) <= limit:
        return text
    kept = limit - 64
    left_out = " … (%d characters are left out)" % (len(text) - kept)
    if not end:
        return text[:kept] + left_out
    return "%s%s …\n%s" % (text[:kept - end], left_out, text[-end:])


def _text_of(value: Any) -> str:
    """Returns the text of an object, as an instance of ``str`` itself; a broken ``__str__`` must not hide an error."""
    try:
        return str.__str__(str(value))
    except BaseException:
        return _UNAVAILABLE


def short_text(error: BaseException) -> str:
    """Returns class, message and frames of an exception, the innermost frame first; at most ``SHORT_LIMIT`` characters.

    The cause is not part of it, nor are frames of the runner.
    """
    text = type(error).__name__ + ": " + cut(_text_of(error) or "<EMPTY MESSAGE>", _MESSAGE_LIMIT)
    try:
        notes = getattr(error, "__notes__", None)
        if isinstance(notes, list) and notes:
            listed = "\n".join([_text_of(note) for note in notes])
            text = cut("%s\n__notes__ (len=%d):\n%s" % (text, len(notes), listed), _MESSAGE_LIMIT + 4096)
    except BaseException:  # a broken attribute
        pass
    frames = model_frames(error.__traceback__)
    if frames:
        text += "\n\nAt:\n" + "".join("  %s(%d): %s\n" % frame for frame in reversed(frames))
    return cut(text, SHORT_LIMIT)


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
    """Returns the traceback with all causes, without the frames of the runner at its start.

    It has at most ``LONG_LIMIT`` characters; of a longer one the middle is left out.
    """
    try:
        lines = traceback.format_exception(
            type(error), error, _without_own_frames(error.__traceback__), chain=True
        )
        return cut("".join(lines).rstrip("\n"), LONG_LIMIT, LONG_LIMIT // 2)
    except BaseException:  # a broken __str__ or __repr__
        return short_text(error)


def import_hint(error: BaseException) -> str:
    """Returns which Python and which environment an import failed in, or an empty text."""
    seen: Set[int] = set()
    cause: Optional[BaseException] = error
    while cause is not None and not isinstance(cause, ImportError) and id(cause) not in seen:
        seen.add(id(cause))
        # Not by their truth, which a class of the model may define.
        following = cause.__cause__
        if following is None and not cause.__suppress_context__:
            following = cause.__context__
        cause = following
    if not isinstance(cause, ImportError):
        return ""
    return "Python %d.%d.%d at %s, environment %s" % (
        sys.version_info[:3] + (sys.executable or "?", sys.prefix)
    )
