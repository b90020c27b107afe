"""Mutual TLS, and parts of the protocol that need a secret."""
import os
import unittest

import grpc

import clients
from clients import messages


def read(name):
    with open(os.path.join(os.environ['NEREID_CERTIFICATES'], name), 'rb') as file:
        return file.read()


def secure_channel(**identity):
    credentials = grpc.ssl_channel_credentials(root_certificates=read('ca.pem'), **identity)
    return grpc.secure_channel(os.environ['NEREID_GRPC'], credentials)


class Secure(unittest.TestCase):
    def setUp(self):
        self.channel = secure_channel(private_key=read('client.key'), certificate_chain=read('client.pem'))
        self.addCleanup(self.channel.close)
        self.server = clients.services.GRPCInferenceServiceStub(self.channel)

    def test_client_with_a_certificate(self):
        count, data = clients.RAW['FP32']
        response = self.server.ModelInfer(clients.echo('FP32', count, data), timeout=60)
        self.assertEqual(response.raw_output_contents[0], data)

    def test_client_without_a_certificate(self):
        for channel in (secure_channel(), grpc.insecure_channel(os.environ['NEREID_GRPC'])):
            with channel:
                server = clients.services.GRPCInferenceServiceStub(channel)
                with self.assertRaises(grpc.RpcError) as caught:
                    server.ServerLive(messages.ServerLiveRequest(), timeout=60)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_restricted_without_the_secret(self):
        for metadata in ([], [('triton-grpc-protocol-admin', 'wrong')]):
            with self.assertRaises(grpc.RpcError) as caught:
                self.server.RepositoryIndex(messages.RepositoryIndexRequest(), timeout=60, metadata=metadata)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertIn("expecting header 'triton-grpc-protocol-admin'", caught.exception.details())

    def test_restricted_with_the_secret(self):
        index = self.server.RepositoryIndex(
            messages.RepositoryIndexRequest(), timeout=60, metadata=[('triton-grpc-protocol-admin', 'sesame')])
        self.assertIn('add_sub', [model.name for model in index.models])


if __name__ == '__main__':
    unittest.main()
