"""POSIX shared memory: the client puts inputs there and finds outputs there, over gRPC and over HTTP."""
import json
import mmap
import os
import unittest
import urllib.request

import grpc

import clients
from clients import messages

SIZE = 2 * mmap.PAGESIZE


class Segment:
    """A segment of shared memory."""

    def __init__(self, name):
        self.key = '/' + name
        self.path = '/dev/shm/' + name
        with open(self.path, 'w+b') as file:
            file.truncate(SIZE)
            self.memory = mmap.mmap(file.fileno(), SIZE)

    def close(self):
        self.memory.close()
        os.unlink(self.path)


class SharedMemory(unittest.TestCase):
    def setUp(self):
        self.channel = clients.channel()
        self.addCleanup(self.channel.close)
        self.server = clients.services.GRPCInferenceServiceStub(self.channel)
        self.segment = Segment('nereid-test-%d' % os.getpid())
        self.addCleanup(self.segment.close)

    def register(self, name, offset=0, size=SIZE):
        self.server.SystemSharedMemoryRegister(messages.SystemSharedMemoryRegisterRequest(
            name=name, key=self.segment.key, offset=offset, byte_size=size), timeout=60)
        self.addCleanup(self.unregister, name)

    def unregister(self, name):
        self.server.SystemSharedMemoryUnregister(
            messages.SystemSharedMemoryUnregisterRequest(name=name), timeout=60)

    def regions(self):
        status = self.server.SystemSharedMemoryStatus(messages.SystemSharedMemoryStatusRequest(), timeout=60)
        return status.regions

    @staticmethod
    def place(tensor, region, size, offset=0):
        tensor.parameters['shared_memory_region'].string_param = region
        tensor.parameters['shared_memory_byte_size'].int64_param = size
        tensor.parameters['shared_memory_offset'].int64_param = offset
        return tensor

    def refused(self, call, code, text):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertIn(text, caught.exception.details())

    def test_status(self):
        self.register('one', offset=mmap.PAGESIZE, size=100)
        region = self.regions()['one']
        self.assertEqual((region.name, region.key, region.offset, region.byte_size),
                         ('one', self.segment.key, mmap.PAGESIZE, 100))
        self.unregister('one')
        self.assertNotIn('one', self.regions())

    def test_every_type_in_and_out(self):
        self.register('all')
        for datatype, (count, data) in clients.RAW.items():
            with self.subTest(datatype):
                self.segment.memory[:len(data)] = data
                self.segment.memory[1000:1000 + len(data)] = bytes(len(data))
                request = messages.ModelInferRequest(model_name='echo_' + datatype.lower())
                self.place(request.inputs.add(name='INPUT0', datatype=datatype, shape=[count]), 'all', len(data))
                self.place(request.outputs.add(name='OUTPUT0'), 'all', len(data), 1000)
                response = self.server.ModelInfer(request, timeout=60)
                self.assertEqual(list(response.outputs[0].shape), [count])
                self.assertEqual(b''.join(response.raw_output_contents), b'')
                self.assertEqual(self.segment.memory[1000:1000 + len(data)], data)

    def test_in_alone(self):
        self.register('in')
        self.segment.memory[8:11] = b'\1\2\3'
        request = messages.ModelInferRequest(model_name='echo_uint8')
        self.place(request.inputs.add(name='INPUT0', datatype='UINT8', shape=[3]), 'in', 3, 8)
        self.assertEqual(self.server.ModelInfer(request, timeout=60).raw_output_contents[0], b'\1\2\3')

    def test_over_http(self):
        self.register('http')
        self.segment.memory[:4] = b'\1\2\3\4'
        place = {'shared_memory_region': 'http', 'shared_memory_byte_size': 4}
        body = {'inputs': [{'name': 'INPUT0', 'datatype': 'UINT8', 'shape': [4], 'parameters': place}],
                'outputs': [{'name': 'OUTPUT0', 'parameters': dict(place, shared_memory_offset=100)}]}
        response = self.post('/v2/models/echo_uint8/infer', body)
        self.assertNotIn('data', response['outputs'][0])
        self.assertEqual(self.segment.memory[100:104], b'\1\2\3\4')

    def test_registered_over_http(self):
        self.post('/v2/systemsharedmemory/region/web/register', {'key': self.segment.key, 'byte_size': 50})
        self.addCleanup(self.unregister, 'web')
        self.assertIn('web', self.regions())
        with urllib.request.urlopen(os.environ['NEREID_HTTP'] + '/v2/systemsharedmemory/status', timeout=60) as response:
            self.assertIn({'name': 'web', 'key': self.segment.key, 'offset': 0, 'byte_size': 50}, json.load(response))
        self.post('/v2/systemsharedmemory/region/web/unregister', None)
        self.assertNotIn('web', self.regions())

    def test_bounds(self):
        self.register('small', size=10)
        code = grpc.StatusCode
        for region, size, offset, status, text in [
                ('small', 4, 8, code.INVALID_ARGUMENT, 'Invalid offset + byte size'),
                ('small', 4, 10, code.INVALID_ARGUMENT, 'Invalid offset'),
                ('nowhere', 4, 0, code.NOT_FOUND, "Unable to find shared memory region: 'nowhere'")]:
            request = messages.ModelInferRequest(model_name='echo_uint8')
            self.place(request.inputs.add(name='INPUT0', datatype='UINT8', shape=[size]), region, size, offset)
            self.refused(lambda: self.server.ModelInfer(request, timeout=60), status, text)

    def test_registration_twice(self):
        self.register('twice')
        self.refused(lambda: self.register('twice'), grpc.StatusCode.ALREADY_EXISTS, "'twice' already in manager")

    def test_a_file_cut_short_fails_one_request(self):
        self.register('cut')
        os.truncate(self.segment.path, 0)
        request = messages.ModelInferRequest(model_name='echo_uint8')
        self.place(request.inputs.add(name='INPUT0', datatype='UINT8', shape=[SIZE]), 'cut', SIZE)
        with self.assertRaises(grpc.RpcError):
            self.server.ModelInfer(request, timeout=60)
        self.assertTrue(self.server.ServerLive(messages.ServerLiveRequest(), timeout=60).live)

    def test_no_gpu(self):
        request = messages.CudaSharedMemoryRegisterRequest(name='gpu', raw_handle=bytes(64), device_id=0, byte_size=4)
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.CudaSharedMemoryRegister(request, timeout=60)
        self.assertIn('GPUs not supported', caught.exception.details())

    @staticmethod
    def post(path, body):
        data = b'' if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(
                os.environ['NEREID_HTTP'] + path, data=data, method='POST'), timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None


if __name__ == '__main__':
    unittest.main()
