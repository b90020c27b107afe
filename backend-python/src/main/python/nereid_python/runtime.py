"""The runner of this process, for the modules that models import; None outside of a server."""

from typing import Any, Optional

runner: Optional[Any] = None


def required() -> Any:
    """Returns the runner, or raises where there is no server."""
    if runner is None:
        raise RuntimeError("this function needs a model that runs in a server")
    return runner
