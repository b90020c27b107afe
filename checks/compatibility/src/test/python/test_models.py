"""The small questions: health, metadata, configuration and what the repository holds."""
import unittest

import grpc

import clients
from clients import messages


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.channel = clients.channel()
        cls.server = clients.services.GRPCInferenceServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def test_health(self):
        self.assertTrue(self.server.ServerLive(messages.ServerLiveRequest(), timeout=60).live)
        self.assertTrue(self.server.ServerReady(messages.ServerReadyRequest(), timeout=60).ready)
        self.assertTrue(self.server.ModelReady(messages.ModelReadyRequest(name='add_sub'), timeout=60).ready)
        self.assertFalse(self.server.ModelReady(messages.ModelReadyRequest(name='nowhere'), timeout=60).ready)

    def test_standard_health(self):
        self.assertEqual(clients.health(self.channel, ''), clients.SERVING)
        self.assertEqual(clients.health(self.channel, 'add_sub'), clients.SERVING)

    def test_watched_health(self):
        watch = clients.health_watch(self.channel, '')
        self.assertEqual(next(watch), clients.SERVING)
        watch.cancel()

    def test_metadata(self):
        server = self.server.ServerMetadata(messages.ServerMetadataRequest(), timeout=60)
        self.assertEqual(server.name, 'nereid')
        self.assertIn('binary_tensor_data', server.extensions)
        model = self.server.ModelMetadata(messages.ModelMetadataRequest(name='add_sub', version='1'), timeout=60)
        self.assertEqual(list(model.versions), ['1'])
        self.assertEqual([(i.name, i.datatype, list(i.shape)) for i in model.inputs],
                         [('INPUT0', 'INT32', [-1, 4]), ('INPUT1', 'INT32', [-1, 4])])

    def test_configuration(self):
        config = self.server.ModelConfig(messages.ModelConfigRequest(name='echo_bytes'), timeout=60).config
        self.assertEqual(config.backend, 'identity')
        self.assertEqual(list(config.input[0].dims), [-1])

    def test_unknown_models(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.ModelMetadata(messages.ModelMetadataRequest(name='nowhere'), timeout=60)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_repository_index(self):
        index = self.server.RepositoryIndex(messages.RepositoryIndexRequest(), timeout=60).models
        ready = self.server.RepositoryIndex(messages.RepositoryIndexRequest(ready=True), timeout=60).models
        self.assertIn(('add_sub', '1', 'READY'), [(m.name, m.version, m.state) for m in index])
        self.assertIn('add_sub', [m.name for m in ready])

    def test_loading_is_not_for_clients_of_this_server(self):
        for call in (lambda: self.server.RepositoryModelLoad(
                         messages.RepositoryModelLoadRequest(model_name='add_sub'), timeout=60),
                     lambda: self.server.RepositoryModelUnload(
                         messages.RepositoryModelUnloadRequest(model_name='add_sub'), timeout=60)):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertIn('explicit model load / unload is not allowed', caught.exception.details())


if __name__ == '__main__':
    unittest.main()
