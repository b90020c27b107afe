package dev.nereid.benchmarks.load;

import static java.util.stream.Collectors.toMap;

import inference.GRPCInferenceServiceGrpc;
import inference.InferBatchStatistics;
import inference.ModelStatisticsRequest;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import java.io.IOException;
import java.util.Map;

/** Reads statistics of models over gRPC. Confined to the thread that measures. */
public final class GrpcStatistics implements AutoCloseable {
    private final ManagedChannel channel;

    private GrpcStatistics(ManagedChannel channel) {
        this.channel = channel;
    }

    public static GrpcStatistics connect(int port) {
        return new GrpcStatistics(
                NettyChannelBuilder.forAddress(Loopback.at(port)).usePlaintext().build());
    }

    /** Returns the number of executions by batch size: {@code batch_stats} of a model with one version. Blocks. */
    public Map<Long, Long> executions(String model) throws IOException {
        try {
            return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                    .modelStatistics(
                            ModelStatisticsRequest.newBuilder().setName(model).build())
                    .getModelStats(0)
                    .getBatchStatsList()
                    .stream()
                    .collect(toMap(
                            InferBatchStatistics::getBatchSize,
                            batch -> batch.getComputeInfer().getCount()));
        } catch (StatusRuntimeException e) {
            throw new IOException("ModelStatistics: " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        channel.shutdownNow();
    }
}
