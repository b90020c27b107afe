#!/usr/bin/python3
"""Writes the model `add_sub`: OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1.

All four tensors are INT32 of shape [batch, 4]. Needs Debian's python3-onnx; run it from anywhere:

    /usr/bin/python3 examples/training/make_add_sub.py
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

MODEL = Path(__file__).resolve().parent.parent / "models" / "add_sub" / "1" / "model.onnx"
SHAPE = ["batch", 4]
IR_VERSION = 8
OPSET = 14


def tensor(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT32, SHAPE)


def build() -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes=[
            helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"], name="add"),
            helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"], name="sub"),
        ],
        name="add_sub",
        inputs=[tensor("INPUT0"), tensor("INPUT1")],
        outputs=[tensor("OUTPUT0"), tensor("OUTPUT1")],
    )
    return helper.make_model(
        graph,
        producer_name="make_add_sub.py",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )


def main() -> None:
    model = build()
    onnx.checker.check_model(model, full_check=True)
    MODEL.parent.mkdir(parents=True, exist_ok=True)
    MODEL.write_bytes(model.SerializeToString(deterministic=True))
    print(f"add_sub: {MODEL.stat().st_size} bytes")


if __name__ == "__main__":
    main()
