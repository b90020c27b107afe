package dev.nereid.distribution.pipelines;

import dev.nereid.api.ModelRef;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.InferBatchStatistics;
import inference.ModelInferResponse;
import inference.ModelStatistics;
import inference.ModelStatisticsRequest;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A server with the pipelines of the examples, and clients of it. Confined to the test's thread. */
final class Examples implements AutoCloseable {
    private static final long TIMEOUT_SECONDS = 60;

    private final TestServer server;
    private final HttpConnection http;
    private final ManagedChannel channel;

    private Examples(TestServer server) throws IOException {
        this.server = server;
        http = server.http();
        channel = server.grpc();
    }

    static Examples serve() throws IOException, InterruptedException {
        Repository models = new Repository(TestPaths.checkout().resolve("examples/pipeline-models"));
        return of(TestServer.open(NereidServer.start(TestServer.of(models))));
    }

    static Examples of(TestServer server) throws IOException {
        return new Examples(server);
    }

    /** A protocol, with the way to the outputs of a response by name, or to the text of an error. */
    enum Protocol {
        HTTP {
            @Override
            Map<String, byte[]> infer(Examples examples, ClientRequest request) throws IOException {
                RawHttpResponse response = examples.http.exchange(request.overHttp());
                if (response.status() != 200) {
                    throw new IOException(response.status() + " " + response.error());
                }
                return response.binaryOutputs();
            }
        },
        GRPC {
            @Override
            Map<String, byte[]> infer(Examples examples, ClientRequest request) throws IOException {
                try {
                    return outputs(examples.stub().modelInfer(request.overGrpc()));
                } catch (StatusRuntimeException e) {
                    throw new IOException(
                            e.getStatus().getCode() + " " + e.getStatus().getDescription(), e);
                }
            }
        };

        abstract Map<String, byte[]> infer(Examples examples, ClientRequest request) throws IOException;
    }

    /** Returns the outputs of a response over gRPC. */
    static Map<String, byte[]> outputs(ModelInferResponse response) {
        Map<String, byte[]> outputs = new LinkedHashMap<>();
        for (int i = 0; i < response.getOutputsCount(); i++) {
            outputs.put(
                    response.getOutputs(i).getName(),
                    response.getRawOutputContents(i).toByteArray());
        }
        return outputs;
    }

    /** Returns a request with the file of a picture. */
    static ClientRequest picture(String model, String input, byte[] file) {
        return ClientRequest.of(model).input(input, "BYTES", TensorBytes.byteStrings(file), 1, 1);
    }

    Map<String, byte[]> infer(Protocol protocol, ClientRequest request) throws IOException {
        return protocol.infer(this, request);
    }

    TestServer server() {
        return server;
    }

    ManagedChannel channel() {
        return channel;
    }

    GRPCInferenceServiceBlockingStub stub() {
        return GRPCInferenceServiceGrpc.newBlockingStub(channel).withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    boolean isReady(String model) {
        return server.server().models().isReady(ModelRef.latest(model));
    }

    ModelStatistics statistics(String model) {
        return stub().modelStatistics(
                        ModelStatisticsRequest.newBuilder().setName(model).build())
                .getModelStats(0);
    }

    /** Returns the mean number of items of the batches of a model between two states of its statistics. */
    static double meanBatch(ModelStatistics before, ModelStatistics after) {
        long items = 0;
        long batches = 0;
        for (InferBatchStatistics batch : after.getBatchStatsList()) {
            long count = batch.getComputeInfer().getCount() - count(before, batch.getBatchSize());
            items += count * batch.getBatchSize();
            batches += count;
        }
        return (double) items / batches;
    }

    private static long count(ModelStatistics statistics, long batchSize) {
        return statistics.getBatchStatsList().stream()
                .filter(batch -> batch.getBatchSize() == batchSize)
                .mapToLong(batch -> batch.getComputeInfer().getCount())
                .sum();
    }

    @Override
    public void close() throws IOException {
        http.close();
        try {
            channel.shutdownNow().awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        server.close();
    }
}
