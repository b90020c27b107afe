"""Models and exchanges recorded from Triton's Python backend."""

import json
import os

import numpy as np

from peer import datatypes, texts
from nereid_model import config

TYPES = {name: number for number, name in enumerate(datatypes.NAMES)}
STATUS = {0: 400, 1: 500, 2: 404, 3: 400, 4: 503, 5: 501, 6: 400, 7: 400}


def root():
    """Returns the directory of the record, or None: ``shared/golden/python`` beside a directory above this one."""
    given = os.environ.get("NEREID_GOLDEN_PYTHON")
    if given:
        return given
    directory = os.path.dirname(os.path.abspath(__file__))
    while directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
        path = os.path.join(directory, "shared", "golden", "python")
        if os.path.isdir(path):
            return path
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
