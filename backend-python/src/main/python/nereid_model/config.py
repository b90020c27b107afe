"""Reads ``config.pbtxt``, as far as a model sees it in a test."""

import os
import re
from typing import Any, Dict, List

_TOKEN = re.compile(r"""\s+|\#[^\n]*|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([\[\]{}<>:,;])|([^\s\[\]{}<>:,;"'\#]+)""")
_REPEATED = ("input", "output", "instance_group", "control_input", "control", "state", "batch_input", "batch_output", "dims")


class ConfigError(Exception):
    """The text is no configuration."""


def parse(text: str) -> Dict[str, Any]:
    """Returns the fields of a message in protobuf's text format."""
    tokens: List[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ConfigError("line %d: %r is not expected" % (text.count("\n", 0, position) + 1, text[position]))
        token = match.group(1) or match.group(2) or match.group(3)
        if token:
            tokens.append(token)
        position = match.end()
    parser = _Parser(tokens)
    return parser.message(None)


class _Parser:
    def __init__(self, tokens: List[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def _next(self) -> str:
        if self._position == len(self._tokens):
            raise ConfigError("the text ends too early")
        self._position += 1
        return self._tokens[self._position - 1]

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def message(self, end: Any) -> Dict[str, Any]:
        fields: Dict[str, Any] = {}
        while True:
            if end is None and not self._peek():
                return fields
            name = self._next()
            if name == end:
                return fields
            if name in ",;":
                continue
            if self._peek() == ":":
                self._next()
            value = self._value()
            values = value if isinstance(value, list) else [value]
            if isinstance(value, list) or name in _REPEATED or name in fields:
                before = fields.get(name, [])
                fields[name] = (before if isinstance(before, list) else [before]) + values
            else:
                fields[name] = value

    def _value(self) -> Any:
        token = self._next()
        if token == "{":
            return self.message("}")
        if token == "<":
            return self.message(">")
        if token == "[":
            values = []
            while self._peek() != "]":
                if self._peek() in (",", ";"):
                    self._next()
                else:
                    values.append(self._value())
            self._next()
            return values
        if token[0] in "\"'":
            text = token[1:-1]
            while self._peek()[:1] in ('"', "'") and self._peek():
                text += self._next()[1:-1]
            return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match.group(1), match.group(1)), text)
        if token in ("true", "false"):
            return token == "true"
        for kind in (int, float):
            try:
                return kind(token)
            except ValueError:
                pass
        return token


def read(directory: str) -> Dict[str, Any]:
    """Returns the configuration of a model directory, with the defaults that models read."""
    config: Dict[str, Any] = {
        "name": os.path.basename(os.path.abspath(directory)), "platform": "", "backend": "python", "runtime": "",
        "max_batch_size": 0, "input": [], "output": [], "instance_group": [], "default_model_filename": "",
    }
    path = os.path.join(directory, "config.pbtxt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            config.update(parse(file.read()))
    for tensor in config["input"]:
        tensor.setdefault("optional", False)
    for tensor in config["input"] + config["output"]:
        tensor.setdefault("data_type", "TYPE_INVALID")
        tensor.setdefault("dims", [])
    parameters = config.get("parameters", [])
    if isinstance(parameters, dict):
        parameters = [parameters]
    config["parameters"] = {entry.get("key", ""): entry.get("value", {}) for entry in parameters}
    return config
