"""Calls from processes that a model forks, such as those of ``multiprocessing``."""

import os
from typing import Any


class Forks:
    """Cuts forked processes off the channel of their parent."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        os.register_at_fork(after_in_child=self._after_in_child)

    def _after_in_child(self) -> None:
        self._runner.channel.forked = True
