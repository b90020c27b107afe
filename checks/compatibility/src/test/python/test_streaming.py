"""Streams: models with any number of responses, the order of responses, errors, half-close and cancellation."""
import queue
import struct
import unittest

import grpc

import clients


def square(number, **fields):
    return clients.request('square', [('IN', 'INT32', [1], struct.pack('<i', number))], **fields)


def repeat(elements, delays=None, wait=0, **fields):
    count = len(elements)
    delays = delays or [0] * count
    return clients.request('repeat', [
        ('IN', 'INT32', [count], struct.pack('<%di' % count, *elements)),
        ('DELAY', 'UINT32', [count], struct.pack('<%dI' % count, *delays)),
        ('WAIT', 'UINT32', [1], struct.pack('<I', wait))], **fields)


def with_final(request):
    request.parameters['triton_enable_empty_final_response'].bool_param = True
    return request


def is_final(response):
    return response.infer_response.parameters['triton_final_response'].bool_param


def number(response, output='OUT'):
    names = [o.name for o in response.infer_response.outputs]
    return struct.unpack('<i', response.infer_response.raw_output_contents[names.index(output)])[0]


class Streaming(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.channel = clients.channel()
        cls.server = clients.services.GRPCInferenceServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def send(self, *requests, **options):
        return list(self.server.ModelStreamInfer(iter(requests), timeout=60, **options))

    def test_as_many_answers_as_asked_for(self):
        self.assertEqual([number(r) for r in self.send(square(3, id='a'))], [3, 3, 3])

    def test_no_answer(self):
        self.assertEqual(self.send(square(0)), [])

    def test_final_mark(self):
        responses = self.send(with_final(square(2, id='a')))
        self.assertEqual([is_final(r) for r in responses], [False, False, True])
        self.assertEqual([number(r) for r in responses[:2]], [2, 2])
        self.assertEqual(len(responses[2].infer_response.outputs), 0)
        self.assertEqual(responses[2].infer_response.id, 'a')

    def test_final_mark_without_answer(self):
        responses = self.send(with_final(square(0)))
        self.assertEqual([is_final(r) for r in responses], [True])

    def test_answers_in_order(self):
        elements = list(range(50, 100))
        responses = self.send(repeat(elements))
        self.assertEqual([number(r) for r in responses], elements)
        self.assertEqual([number(r, 'IDX') for r in responses], list(range(50)))

    def test_answers_after_the_execution(self):
        self.assertEqual([number(r) for r in self.send(repeat([4, 5], delays=[20, 20]))], [4, 5])

    def test_many_requests_on_one_stream(self):
        responses = self.send(*[clients.echo('INT32', 1, struct.pack('<i', i), id=str(i)) for i in range(100)])
        found = {r.infer_response.id: r.infer_response.raw_output_contents[0] for r in responses}
        self.assertEqual(found, {str(i): struct.pack('<i', i) for i in range(100)})

    def test_a_stream_goes_on_after_an_error(self):
        responses = self.send(clients.request('nowhere', [], id='bad'), square(1, id='good'))
        errors = [r.error_message for r in responses if r.error_message]
        self.assertEqual(len(errors), 1)
        self.assertIn("'nowhere' is not found", errors[0])
        self.assertEqual([number(r) for r in responses if not r.error_message], [1])

    def test_a_refusal_never_ends_a_stream(self):
        responses = self.send(
            clients.request('nowhere', [], id='bad'), square(1, id='good'), metadata=[('triton_grpc_error', 'true')])
        errors = [r.error_message for r in responses if r.error_message]
        self.assertEqual(len(errors), 1)
        self.assertIn("'nowhere' is not found", errors[0])
        self.assertEqual([number(r) for r in responses if not r.error_message], [1])

    def test_questions_and_answers_in_turn(self):
        requests = queue.Queue()
        responses = self.server.ModelStreamInfer(iter(requests.get, None), timeout=60)
        for i in range(1, 20):
            requests.put(with_final(square(1, id=str(i))))
            self.assertEqual(number(next(responses)), 1)
            self.assertTrue(is_final(next(responses)))
        requests.put(None)
        self.assertEqual(list(responses), [])

    def test_cancellation(self):
        responses = self.server.ModelStreamInfer(iter([repeat([1, 2], delays=[0, 600000])]), timeout=60)
        self.assertEqual(number(next(responses)), 1)
        responses.cancel()
        with self.assertRaises(grpc.RpcError) as caught:
            next(responses)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.CANCELLED)
        self.assertEqual([number(r) for r in self.send(repeat([3]))], [3])

    def test_models_that_answer_often_need_a_stream(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.ModelInfer(square(1), timeout=60)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn('decoupled', caught.exception.details())


if __name__ == '__main__':
    unittest.main()
