"""Makes the small models of the tests, in ../resources/models. Needs Debian's python3-onnx.

Run it without arguments after a change, and commit what it makes. Every model is below 10 KB.
"""

import pathlib
import shutil

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.external_data_helper import set_external_data

TARGET = pathlib.Path(__file__).resolve().parent.parent / "resources" / "models"
OPSET = 13

ELEMENT_TYPES = [
    "float", "double", "float16", "bfloat16", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "string",
]


def value(name, element_type, shape):
    return helper.make_tensor_value_info(name, element_type, shape)


def make(name, nodes, inputs, outputs, initializers=()):
    """Makes one model, in a version of the format that all current runtimes read."""
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="nereid")
    model.ir_version = 7
    return model


def write(name, nodes, inputs, outputs, initializers=()):
    """Writes one model, checked."""
    model = make(name, nodes, inputs, outputs, initializers)
    checker.check_model(model)
    (TARGET / f"{name}.onnx").write_bytes(model.SerializeToString())


def write_unchecked(path, nodes, inputs, outputs, initializers=()):
    """Writes one model that the checker refuses, or cannot look at."""
    (TARGET / path).write_bytes(make(path, nodes, inputs, outputs, initializers).SerializeToString())


def identities():
    """output = input [batch, size], for every element type."""
    for name in ELEMENT_TYPES:
        element_type = getattr(TensorProto, name.upper())
        write(
            f"identity_{name}",
            [helper.make_node("Identity", ["input"], ["output"])],
            [value("input", element_type, ["batch", "size"])],
            [value("output", element_type, ["batch", "size"])],
        )


def shapes():
    """A scalar, an input without a shape, and outputs whose shapes depend on values."""
    write(
        "negated_scalar",
        [helper.make_node("Neg", ["input"], ["output"])],
        [value("input", TensorProto.FLOAT, [])],
        [value("output", TensorProto.FLOAT, [])],
    )
    write_unchecked(
        "unknown_rank.onnx",  # valid for runtimes, but the checker requires the shape of an input
        [helper.make_node("Identity", ["input"], ["output"])],
        [value("input", TensorProto.FLOAT, None)],
        [value("output", TensorProto.FLOAT, None)],
    )
    write(
        "non_zero",
        [helper.make_node("NonZero", ["input"], ["output"])],
        [value("input", TensorProto.FLOAT, ["size"])],
        [value("output", TensorProto.INT64, [1, "count"])],
    )


def several_outputs():
    """Fixed shapes; an output that fails unless the index is good, beside one that never does; a constant output."""
    write(
        "add_sub",
        [
            helper.make_node("Add", ["a", "b"], ["sum"]),
            helper.make_node("Sub", ["a", "b"], ["difference"]),
        ],
        [value("a", TensorProto.FLOAT, [4]), value("b", TensorProto.FLOAT, [4])],
        [value("sum", TensorProto.FLOAT, [4]), value("difference", TensorProto.FLOAT, [4])],
    )
    write(
        "gather",
        [helper.make_node("Gather", ["table", "index"], ["output"])],
        [value("index", TensorProto.INT64, ["count"])],
        [value("output", TensorProto.FLOAT, ["count"])],
        [numpy_helper.from_array(np.arange(4, dtype=np.float32), "table")],
    )
    write(
        "constant",
        [
            helper.make_node("Identity", ["input"], ["output"]),
            helper.make_node("Identity", ["table"], ["constant"]),
        ],
        [value("input", TensorProto.FLOAT, [2])],
        [value("output", TensorProto.FLOAT, [2]), value("constant", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.arange(4, dtype=np.float32), "table")],
    )
    write(
        "sequence",
        [helper.make_node("SequenceConstruct", ["input", "input"], ["output"])],
        [value("input", TensorProto.FLOAT, [2])],
        [helper.make_tensor_sequence_value_info("output", TensorProto.FLOAT, [2])],
    )


def other_rows():
    """An output with another number of rows than the inputs: first dimensions of several names are no batch."""
    write(
        "compress",
        [helper.make_node("Compress", ["input", "condition"], ["output"], axis=0)],
        [value("input", TensorProto.FLOAT, ["rows", 4]), value("condition", TensorProto.BOOL, ["flags"])],
        [value("output", TensorProto.FLOAT, ["kept", 4])],
    )


def counting_body():
    """The body of a loop that adds 1 to a count in each iteration."""
    return helper.make_graph(
        [
            helper.make_node("Identity", ["go_in"], ["go_out"]),
            helper.make_node("Add", ["count_in", "one"], ["count_out"]),
        ],
        "body",
        [
            value("iteration", TensorProto.INT64, []),
            value("go_in", TensorProto.BOOL, []),
            value("count_in", TensorProto.INT64, []),
        ],
        [value("go_out", TensorProto.BOOL, []), value("count_out", TensorProto.INT64, [])],
    )


def loop_constants():
    """What a loop around counting_body() starts with."""
    return [
        numpy_helper.from_array(np.array(True), "go"),
        numpy_helper.from_array(np.array(0, dtype=np.int64), "zero"),
        numpy_helper.from_array(np.array(1, dtype=np.int64), "one"),
    ]


def slow_loop():
    """Counts to the value of the input, one addition per iteration: as slow as needed, for termination."""
    write(
        "slow_loop",
        [helper.make_node("Loop", ["limit", "go", "zero"], ["count"], body=counting_body())],
        [value("limit", TensorProto.INT64, [])],
        [value("count", TensorProto.INT64, [])],
        loop_constants(),
    )


def batches():
    """Fixed dimensions but for the batch; a scalar per item; an input with a default; a loop that is slow for a batch."""
    write(
        "batched_add_sub",
        [
            helper.make_node("Add", ["a", "b"], ["sum"]),
            helper.make_node("Sub", ["a", "b"], ["difference"]),
        ],
        [value("a", TensorProto.FLOAT, ["batch", 4]), value("b", TensorProto.FLOAT, ["batch", 4])],
        [value("sum", TensorProto.FLOAT, ["batch", 4]), value("difference", TensorProto.FLOAT, ["batch", 4])],
    )
    write(
        "batched_scalar",
        [helper.make_node("Neg", ["input"], ["output"])],
        [value("input", TensorProto.FLOAT, ["batch"])],
        [value("output", TensorProto.FLOAT, ["batch"])],
    )
    write(
        "wrong_output_shape",  # says [1, 4] whatever comes in, as exporters do that saw one example
        [helper.make_node("Identity", ["input"], ["output"])],
        [value("input", TensorProto.FLOAT, ["size", 4])],
        [value("output", TensorProto.FLOAT, [1, 4])],
    )
    write(
        "default_input",
        [helper.make_node("Add", ["input", "bias"], ["output"])],
        [value("input", TensorProto.FLOAT, [2]), value("bias", TensorProto.FLOAT, [2])],
        [value("output", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.array([1, 2], dtype=np.float32), "bias")],
    )
    write(
        "batched_slow_loop",
        [
            helper.make_node("ReduceMax", ["limit"], ["trips"], keepdims=0),
            helper.make_node("Loop", ["trips", "go", "zero"], ["count"], body=counting_body()),
            helper.make_node("Sub", ["limit", "limit"], ["zeros"]),
            helper.make_node("Add", ["zeros", "count"], ["output"]),
        ],
        [value("limit", TensorProto.INT64, ["batch", 1])],
        [value("output", TensorProto.INT64, ["batch", 1])],
        loop_constants(),
    )


def ragged():
    """The values of all requests flat, and where each request ends: twice the values, and their sum up to each end."""
    write(
        "ragged",
        [
            helper.make_node("Add", ["values", "values"], ["doubled"]),
            helper.make_node("CumSum", ["values", "axis"], ["sums"]),
            helper.make_node("Sub", ["ends", "one"], ["lasts"]),
            helper.make_node("Gather", ["sums", "lasts"], ["running"]),
        ],
        [value("values", TensorProto.FLOAT, ["size"]), value("ends", TensorProto.INT32, ["count"])],
        [value("doubled", TensorProto.FLOAT, ["size"]), value("running", TensorProto.FLOAT, ["count"])],
        [
            numpy_helper.from_array(np.array(0, dtype=np.int32), "axis"),
            numpy_helper.from_array(np.array([1], dtype=np.int32), "one"),
        ],
    )


def external_data():
    """output = input + weights, the weights in a file of their own beside the model."""
    directory = TARGET / "external_data"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    weights = numpy_helper.from_array(np.arange(64, dtype=np.float32), "weights")
    (directory / "weights.bin").write_bytes(weights.raw_data)
    set_external_data(weights, "weights.bin")
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    write_unchecked(
        "external_data/model.onnx",
        [helper.make_node("Add", ["input", "weights"], ["output"])],
        [value("input", TensorProto.FLOAT, [64])],
        [value("output", TensorProto.FLOAT, [64])],
        [weights],
    )


def invalid():
    """A file that is no model, and a model with an operator that does not exist."""
    (TARGET / "not_a_model.onnx").write_bytes(b"this is not a model\n")
    write_unchecked(
        "unknown_operator.onnx",
        [helper.make_node("NoSuchOperator", ["input"], ["output"])],
        [value("input", TensorProto.FLOAT, [2])],
        [value("output", TensorProto.FLOAT, [2])],
    )


if __name__ == "__main__":
    TARGET.mkdir(parents=True, exist_ok=True)
    identities()
    shapes()
    several_outputs()
    other_rows()
    slow_loop()
    batches()
    ragged()
    external_data()
    invalid()
