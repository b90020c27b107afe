"""Models and exchanges recorded from Triton's Python backend."""

import json
import os
import re

import numpy as np

from peer import datatypes, texts

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


def parse_config(text):
    """Returns the fields of a configuration in protobuf's text format, as far as the recorded ones use it."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', text)
    position = 0

    def message(end):
        nonlocal position
        fields = {}
        while position < len(tokens) and tokens[position] != end:
            if tokens[position] == ",":
                position += 1
                continue
            name = tokens[position]
            position += 1
            if tokens[position] == ":":
                position += 1
            value = one()
            if isinstance(value, list):
                fields.setdefault(name, []).extend(value)
            elif name in fields:
                if not isinstance(fields[name], list):
                    fields[name] = [fields[name]]
                fields[name].append(value)
            else:
                fields[name] = value
        position += 1
        return fields

    def one():
        nonlocal position
        token = tokens[position]
        position += 1
        if token == "{":
            return message("}")
        if token == "[":
            values = []
            while tokens[position] != "]":
                if tokens[position] == ",":
                    position += 1
                else:
                    values.append(one())
            position += 1
            return values
        if token.startswith('"'):
            return token[1:-1]
        if token in ("true", "false"):
            return token == "true"
        try:
            return int(token)
        except ValueError:
            return token

    return message(None)


def configuration(name, directory):
    """Returns a configuration as the server passes it on, as far as the recorded models read it."""
    with open(os.path.join(directory, name, "config.pbtxt")) as file:
        given = parse_config(file.read())
    config = {"name": name, "platform": "", "backend": "", "max_batch_size": 0, "input": [], "output": []}
    config.update(given)
    for kind in ("input", "output", "instance_group"):
        if isinstance(config.get(kind), dict):
            config[kind] = [config[kind]]
    for tensor in config["input"]:
        tensor.setdefault("optional", False)
    parameters = config.get("parameters") or []
    if isinstance(parameters, dict):
        parameters = [parameters]
    config["parameters"] = {entry["key"]: entry["value"] for entry in parameters}
    return config


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
