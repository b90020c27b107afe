"""Compressed requests and responses, in the form that clients of the reference server give them, over HTTP and gRPC."""
import gzip
import itertools
import json
import os
import socket
import struct
import unittest
import urllib.parse
import zlib

import grpc

import clients

CODINGS = (None, 'gzip', 'deflate')
CODE = {'gzip': gzip.compress, 'deflate': zlib.compress}
DECODE = {'gzip': gzip.decompress, 'deflate': zlib.decompress}

MANY = 300_000
NUMBERS = struct.pack('<%df' % MANY, *(float(i % 1000) for i in range(MANY)))
TEXTS = [b'', 'é'.encode(), b'\0\xff', b'x' * 70_000] + [b'%d' % i for i in range(100_000)]
ONES = struct.pack('<4i', 1, 2, 3, 4)
TENS = struct.pack('<4i', 10, 20, 30, 40)

# Model, inputs as (name, type, shape, bytes), and outputs by their names.
REQUESTS = {
    'tiny': ('echo_uint8', [('INPUT0', 'UINT8', [1], b'\7')], {'OUTPUT0': b'\7'}),
    'empty': ('echo_fp32', [('INPUT0', 'FP32', [0], b'')], {'OUTPUT0': b''}),
    'large': ('echo_fp32', [('INPUT0', 'FP32', [MANY], NUMBERS)], {'OUTPUT0': NUMBERS}),
    'noise': ('echo_uint8', [('INPUT0', 'UINT8', [2 << 20], noise := os.urandom(2 << 20))], {'OUTPUT0': noise}),
    'texts': ('echo_bytes', [('INPUT0', 'BYTES', [len(TEXTS)], clients.strings(*TEXTS))],
              {'OUTPUT0': clients.strings(*TEXTS)}),
    'two': ('add_sub', [('INPUT0', 'INT32', [1, 4], TENS), ('INPUT1', 'INT32', [1, 4], ONES)],
            {'OUTPUT0': struct.pack('<4i', 11, 22, 33, 44), 'OUTPUT1': struct.pack('<4i', 9, 18, 27, 36)}),
}


class Http:
    """A connection that sends heads as they are written here."""

    def __init__(self):
        server = urllib.parse.urlparse(os.environ['NEREID_HTTP'])
        self.host = '%s:%d' % (server.hostname, server.port)
        self.socket = socket.create_connection((server.hostname, server.port), timeout=60)
        self.input = self.socket.makefile('rb')

    def close(self):
        self.input.close()
        self.socket.close()

    def send(self, path, head, body):
        lines = ['POST ' + path + ' HTTP/1.1'] + [name + ': ' + str(value) for name, value in head]
        self.socket.sendall(('\r\n'.join(lines) + '\r\n\r\n').encode())
        self.socket.sendall(body)
        status = int(self.input.readline().split()[1])
        headers = {}
        for line in iter(self.input.readline, b'\r\n'):
            name, value = line.decode().split(':', 1)
            headers[name.lower()] = value.strip()
        return status, headers, self.input.read(int(headers['content-length']))


def described(model, inputs, outputs, binary):
    """The JSON of a request, with tensors behind it or in it."""
    tensors = []
    for name, datatype, shape, data in inputs:
        tensor = {'name': name, 'shape': shape, 'datatype': datatype}
        if binary:
            tensor['parameters'] = {'binary_data_size': len(data)}
        else:
            code = clients.NUMBERS[datatype][0]
            tensor['data'] = [element for element, in struct.iter_unpack('<' + code, data)]
        tensors.append(tensor)
    selected = [{'name': name, 'parameters': {'binary_data': True}} for name in outputs]
    return {'id': 'a', 'inputs': tensors, 'outputs': selected}


def of_python(http, text, tensors, request_coding, response_coding):
    """As the Python client sends: codings first, the length of the JSON only if something follows."""
    body = text + tensors
    head = []
    if request_coding:
        head.append(('Content-Encoding', request_coding))
        body = CODE[request_coding](body)
    if response_coding:
        head.append(('Accept-Encoding', response_coding))
    if tensors is not None and len(tensors) > 0:
        head.append(('Inference-Header-Content-Length', len(text)))
    return head + [('Host', http.host), ('User-Agent', 'python/gevent-http-client'), ('Content-Length', len(body))], body


def of_cpp(http, text, tensors, request_coding, response_coding):
    """As the C++ client sends, by libcurl: the length of the JSON always."""
    body = text + tensors
    head = [('Host', http.host), ('User-Agent', 'libcurl-agent/1.0'), ('Accept', '*/*')]
    if response_coding:
        head.append(('Accept-Encoding', response_coding))
    head.append(('Inference-Header-Content-Length', len(text)))
    head.append(('Content-Type', 'application/octet-stream' if tensors else 'application/json'))
    if request_coding:
        head.append(('Content-Encoding', request_coding))
        body = CODE[request_coding](body)
    return head + [('Content-Length', len(body))], body


class OverHttp(unittest.TestCase):
    def setUp(self):
        self.http = Http()
        self.addCleanup(self.http.close)

    def check(self, style, name, binary, request_coding, response_coding):
        model, inputs, outputs = REQUESTS[name]
        separators = (',', ':') if style is of_cpp else None
        text = json.dumps(described(model, inputs, outputs, binary), separators=separators).encode()
        tensors = b''.join(data for _, _, _, data in inputs) if binary else b''
        if binary and not tensors and style is of_python:
            return  # has no length of its JSON, which then is all there is
        head, body = style(self.http, text, tensors, request_coding, response_coding)
        status, headers, response = self.http.send('/v2/models/%s/infer' % model, head, body)
        coding = headers.get('content-encoding')
        self.assertEqual(coding, response_coding)
        if coding:
            response = DECODE[coding](response)
        self.assertEqual(status, 200, response[:1000])
        length = int(headers.get('inference-header-content-length', len(response)))
        header = json.loads(response[:length])
        found, at = {}, length
        for output in header['outputs']:
            size = output['parameters']['binary_data_size']
            found[output['name']] = response[at:at + size]
            at += size
        self.assertEqual(at, len(response))
        self.assertEqual(found, outputs)

    def test_bytes_behind_json(self):
        for style, name in itertools.product((of_python, of_cpp), REQUESTS):
            for request_coding, response_coding in itertools.product(CODINGS, CODINGS):
                with self.subTest(style=style.__name__, name=name, request=request_coding, response=response_coding):
                    self.check(style, name, True, request_coding, response_coding)

    def test_json_alone(self):
        for style, name in itertools.product((of_python, of_cpp), ('tiny', 'two', 'large')):
            for request_coding, response_coding in itertools.product(CODINGS, CODINGS):
                with self.subTest(style=style.__name__, name=name, request=request_coding, response=response_coding):
                    self.check(style, name, False, request_coding, response_coding)

    def test_an_unknown_coding(self):
        head = [('Host', self.http.host), ('Content-Encoding', 'br'), ('Content-Length', 2)]
        status, headers, _ = self.http.send('/v2/models/echo_uint8/infer', head, b'{}')
        self.assertEqual((status, headers['accept-encoding']), (501, 'gzip, deflate'))


class OverGrpc(unittest.TestCase):
    COMPRESSIONS = {None: grpc.Compression.NoCompression, 'gzip': grpc.Compression.Gzip,
                    'deflate': grpc.Compression.Deflate}
    # What a client takes, as bits: identity, deflate, gzip.
    TAKEN = {'all': 7, 'deflate': 3, 'gzip': 5}

    def check(self, response, outputs):
        found = {output.name: data for output, data in zip(response.outputs, response.raw_output_contents)}
        self.assertEqual(found, outputs)

    def test_calls_and_streams(self):
        for taken, bits in self.TAKEN.items():
            options = [('grpc.max_receive_message_length', -1), ('grpc.max_send_message_length', -1),
                       ('grpc.compression_enabled_algorithms_bitset', bits)]
            with clients.channel(options) as channel:
                server = clients.services.GRPCInferenceServiceStub(channel)
                for coding in CODINGS if taken == 'all' else (None, taken):
                    for name, (model, inputs, outputs) in REQUESTS.items():
                        with self.subTest(taken=taken, coding=coding, name=name):
                            request = clients.request(model, inputs)
                            compression = self.COMPRESSIONS[coding]
                            self.check(server.ModelInfer(request, timeout=60, compression=compression), outputs)
                    requests = [clients.request(model, inputs) for model, inputs, _ in REQUESTS.values()]
                    responses = list(server.ModelStreamInfer(
                        iter(requests), timeout=60, compression=self.COMPRESSIONS[coding]))
                    self.assertEqual([response.error_message for response in responses], [''] * len(requests))
                    for response, (_, _, outputs) in zip(responses, REQUESTS.values()):
                        self.check(response.infer_response, outputs)

    def test_other_methods(self):
        with clients.channel() as channel:
            server = clients.services.GRPCInferenceServiceStub(channel)
            for compression in self.COMPRESSIONS.values():
                metadata = server.ModelMetadata(
                    clients.messages.ModelMetadataRequest(name='echo_uint8'), timeout=60, compression=compression)
                self.assertEqual(metadata.name, 'echo_uint8')


if __name__ == '__main__':
    unittest.main()
