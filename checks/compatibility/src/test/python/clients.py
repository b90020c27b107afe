"""What the tests share: a channel to the server under test, and the tensors of each data type."""
import os
import struct

import grpc

from inference import grpc_service_pb2 as messages
from inference import grpc_service_pb2_grpc as services


def channel(options=()):
    return grpc.insecure_channel(os.environ['NEREID_GRPC'], options=list(options))


def strings(*elements):
    return b''.join(struct.pack('<I', len(e)) + e for e in elements)


# Data type -> format of struct, elements, and the field of typed contents.
NUMBERS = {
    'BOOL': ('?', [True, False, True], 'bool_contents'),
    'UINT8': ('B', [0, 255], 'uint_contents'),
    'UINT16': ('H', [1, 65535], 'uint_contents'),
    'UINT32': ('I', [1, 2 ** 32 - 1], 'uint_contents'),
    'UINT64': ('Q', [1, 2 ** 64 - 1], 'uint64_contents'),
    'INT8': ('b', [-128, 127], 'int_contents'),
    'INT16': ('h', [-2 ** 15, 2 ** 15 - 1], 'int_contents'),
    'INT32': ('i', [-2 ** 31, 2 ** 31 - 1], 'int_contents'),
    'INT64': ('q', [-2 ** 63, 2 ** 63 - 1], 'int64_contents'),
    'FP32': ('f', [0.1, float('-inf')], 'fp32_contents'),
    'FP64': ('d', [0.1, -2.25], 'fp64_contents'),
}

# Data type -> number of elements and their bytes.
RAW = {name: (len(elements), struct.pack('<%d%s' % (len(elements), code), *elements))
       for name, (code, elements, _) in NUMBERS.items()}
RAW['FP16'] = (2, struct.pack('<2e', 1.5, -2.25))
RAW['BF16'] = (2, bytes.fromhex('c03f10c0'))
RAW['BYTES'] = (3, strings('é'.encode(), b'', b'\0\xff'))

# Data type -> elements and field; FP16 and BF16 have none.
TYPED = {name: (elements, field) for name, (_, elements, field) in NUMBERS.items()}
TYPED['BYTES'] = (['é'.encode(), b'', b'\0\xff'], 'bytes_contents')


def request(model, tensors, **fields):
    """A request with raw contents. `tensors` are (name, type, shape, bytes)."""
    made = messages.ModelInferRequest(model_name=model, **fields)
    for name, datatype, shape, data in tensors:
        made.inputs.add(name=name, datatype=datatype, shape=shape)
        made.raw_input_contents.append(data)
    return made


def echo(datatype, count, data, **fields):
    return request('echo_' + datatype.lower(), [('INPUT0', datatype, [count], data)], **fields)


def typed_echo(datatype):
    elements, field = TYPED[datatype]
    made = messages.ModelInferRequest(model_name='echo_' + datatype.lower())
    tensor = made.inputs.add(name='INPUT0', datatype=datatype, shape=[len(elements)])
    getattr(tensor.contents, field).extend(elements)
    return made


SERVING = 1


def _health_request(service):
    name = service.encode()
    return b'\n' + bytes([len(name)]) + name if name else b''


def _health_status(message):
    """The only field of the response, a small number; absent if it is 0."""
    return message[1] if message else 0


def health(channel, service):
    """Calls the standard health service; Debian has no stubs for it."""
    check = channel.unary_unary('/grpc.health.v1.Health/Check', _health_request, _health_status)
    return check(service, timeout=60)


def health_watch(channel, service):
    return channel.unary_stream('/grpc.health.v1.Health/Watch', _health_request, _health_status)(service, timeout=60)
