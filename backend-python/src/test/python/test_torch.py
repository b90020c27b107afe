"""DLPack with torch, where it is installed."""

import importlib.util
import unittest

import numpy as np

import peer  # noqa: F401  (sets the path)
from triton_python_backend_utils import Tensor, TritonModelException


@unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
class TorchTest(unittest.TestCase):
    def setUp(self):
        import torch

        self.torch = torch

    def test_both_ways_for_all_types(self):
        torch = self.torch
        for kind in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16"):
            for shape in ((2, 3), (), (1, 1), (0, 2)):
                source = torch.ones(shape, dtype=getattr(torch, kind))
                for given in (source, torch.utils.dlpack.to_dlpack(source)):
                    tensor = Tensor.from_dlpack("x", given)
                    self.assertEqual(list(shape), tensor.shape())
                    for back in (torch.from_dlpack(tensor), torch.utils.dlpack.from_dlpack(tensor.to_dlpack())):
                        self.assertEqual(source.dtype, back.dtype)
                        self.assertTrue(torch.equal(source, back))
                        if source.numel():
                            self.assertEqual(source.data_ptr(), back.data_ptr())

    def test_memory_is_shared_and_kept(self):
        torch = self.torch
        array = np.arange(4, dtype=np.float32)
        back = torch.from_dlpack(Tensor("x", array))
        back[0] = 7
        self.assertEqual(7, array[0])
        del array
        self.assertEqual([7, 1, 2, 3], back.tolist())

    def test_refusals(self):
        torch = self.torch
        for wrong in (torch.zeros(4, 4).t(), torch.zeros(4, 4)[:, ::2]):
            with self.assertRaisesRegex(TritonModelException, "^DLPack tensor is not contiguous"):
                Tensor.from_dlpack("x", wrong)
        with self.assertRaisesRegex(TritonModelException, "^Dtype is invalid"):
            Tensor.from_dlpack("x", torch.zeros(2, dtype=torch.complex64))
        with self.assertRaises(TypeError):
            Tensor("x", torch.zeros(2))


if __name__ == "__main__":
    unittest.main()
