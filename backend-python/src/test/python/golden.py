"""Models and exchanges recorded from Triton's Python backend."""

import json
import os

import numpy as np

from peer import datatypes, texts
from nereid_model import config

ROOTS = (
    os.environ.get("NEREID_GOLDEN_PYTHON", ""),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../shared/golden/python"),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../../../shared/golden/python"),
)
TYPES = {name: number for number, name in enumerate(datatypes.NAMES)}
STATUS = {0: 400, 1: 500, 2: 404, 3: 400, 4: 503, 5: 501, 6: 400, 7: 400}


def root():
    """Returns the directory of the record, or None."""
    for path in ROOTS:
        if path and os.path.isdir(path):
            return os.path.abspath(path)
    return None


def configuration(name, directory):
    """Returns a configuration as the server passes it on, as far as the recorded models read it."""
    return config.read(os.path.join(directory, name))


def exchanges(directory):
    """Returns the recorded exchanges."""
    with open(os.path.join(directory, "http.jsonl")) as file:
        return [json.loads(line) for line in file]


def array(tensor):
    """Returns the array of an input in JSON."""
    number = TYPES[tensor["datatype"]]
    if number == 13:
        flat = np.array(tensor["data"], dtype=np.object_).reshape(-1).tolist()
        return texts(*flat).reshape(tensor["shape"])
    return np.array(tensor["data"], dtype=datatypes.DTYPES[number]).reshape(tensor["shape"])


def listed(value):
    """Returns the elements of an output as JSON has them."""
    flat = value.reshape(-1).tolist()
    return [v.decode() if isinstance(v, bytes) else v for v in flat]
