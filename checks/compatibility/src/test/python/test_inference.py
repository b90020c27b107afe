"""Single inferences: every data type, raw and typed, and what goes with a request."""
import struct
import unittest

import grpc

import clients
from clients import messages


class Inference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.channel = clients.channel()
        cls.server = clients.services.GRPCInferenceServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def infer(self, request, **options):
        return self.server.ModelInfer(request, timeout=60, **options)

    def refused(self, request, code, text, **options):
        with self.assertRaises(grpc.RpcError) as caught:
            self.infer(request, **options)
        self.assertEqual(caught.exception.code(), code)
        self.assertIn(text, caught.exception.details())

    def test_every_type_as_bytes(self):
        for datatype, (count, data) in clients.RAW.items():
            with self.subTest(datatype):
                response = self.infer(clients.echo(datatype, count, data))
                self.assertEqual(response.outputs[0].name, 'OUTPUT0')
                self.assertEqual(response.outputs[0].datatype, datatype)
                self.assertEqual(list(response.outputs[0].shape), [count])
                self.assertEqual(list(response.raw_output_contents), [data])

    def test_every_type_as_typed_contents(self):
        for datatype in clients.TYPED:
            with self.subTest(datatype):
                response = self.infer(clients.typed_echo(datatype))
                self.assertEqual(list(response.raw_output_contents), [clients.RAW[datatype][1]])

    def test_tensors_without_elements(self):
        for datatype in clients.RAW:
            with self.subTest(datatype):
                response = self.infer(clients.echo(datatype, 0, b''))
                self.assertEqual(list(response.outputs[0].shape), [0])
                self.assertEqual(b''.join(response.raw_output_contents), b'')

    def test_large_tensors(self):
        data = bytes(range(256)) * 65536  # 16 MiB
        with clients.channel([('grpc.max_receive_message_length', -1)]) as channel:
            server = clients.services.GRPCInferenceServiceStub(channel)
            response = server.ModelInfer(clients.echo('UINT8', len(data), data), timeout=60)
        self.assertEqual(response.raw_output_contents[0], data)

    def test_compressed_messages(self):
        data = bytes(100000)
        response = self.infer(clients.echo('UINT8', len(data), data), compression=grpc.Compression.Gzip)
        self.assertEqual(response.raw_output_contents[0], data)

    def test_two_inputs_of_a_network(self):
        ones = struct.pack('<4i', 1, 2, 3, 4)
        tens = struct.pack('<4i', 10, 20, 30, 40)
        response = self.infer(clients.request(
            'add_sub', [('INPUT0', 'INT32', [1, 4], tens), ('INPUT1', 'INT32', [1, 4], ones)], id='seven',
            model_version='1'))
        self.assertEqual(response.id, 'seven')
        self.assertEqual(response.model_version, '1')
        outputs = {o.name: struct.unpack('<4i', d) for o, d in zip(response.outputs, response.raw_output_contents)}
        self.assertEqual(outputs, {'OUTPUT0': (11, 22, 33, 44), 'OUTPUT1': (9, 18, 27, 36)})

    def test_requested_outputs(self):
        ones = struct.pack('<4i', 1, 2, 3, 4)
        request = clients.request(
            'add_sub', [('INPUT0', 'INT32', [1, 4], ones), ('INPUT1', 'INT32', [1, 4], ones)])
        request.outputs.add(name='OUTPUT1')
        response = self.infer(request)
        self.assertEqual([output.name for output in response.outputs], ['OUTPUT1'])

    def test_parameters(self):
        request = clients.echo('INT8', 1, b'\7')
        request.parameters['priority'].uint64_param = 1
        request.parameters['timeout'].int64_param = 10 ** 9
        request.parameters['sequence_id'].int64_param = 5
        request.parameters['sequence_start'].bool_param = True
        request.parameters['mine'].string_param = 'x'
        self.assertEqual(self.infer(request).raw_output_contents[0], b'\7')

    def test_many_calls_at_once(self):
        pending = [self.server.ModelInfer.future(clients.echo('INT32', 1, struct.pack('<i', i)), timeout=60)
                   for i in range(200)]
        for i, call in enumerate(pending):
            self.assertEqual(call.result().raw_output_contents[0], struct.pack('<i', i))

    def test_refusals(self):
        code = grpc.StatusCode
        self.refused(clients.request('nowhere', []), code.NOT_FOUND, "'nowhere' is not found")
        self.refused(clients.echo('FP32', 2, b'123'), code.INVALID_ARGUMENT, 'input byte size mismatch')
        wrong = clients.request('echo_fp32', [('INPUT0', 'INT32', [1], bytes(4))])
        self.refused(wrong, code.INVALID_ARGUMENT, "data-type is 'INT32'")
        both = clients.typed_echo('INT8')
        both.raw_input_contents.append(b'\1\2')
        self.refused(both, code.INVALID_ARGUMENT, 'contents field must not be specified')


if __name__ == '__main__':
    unittest.main()
