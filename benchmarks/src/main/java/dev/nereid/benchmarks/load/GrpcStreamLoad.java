package dev.nereid.benchmarks.load;

import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Requests over gRPC streams, one at a time on each, with sequences or without. Owned by, and confined to, the thread
 * that measures.
 */
public final class GrpcStreamLoad implements Workload, AutoCloseable {
    private final String name;
    private final List<ManagedChannel> channels;
    private final List<GrpcStreamLane> lanes;

    private GrpcStreamLoad(String name, List<ManagedChannel> channels, List<GrpcStreamLane> lanes) {
        this.name = name;
        this.channels = channels;
        this.lanes = lanes;
    }

    /**
     * Connects; each period of load is one sequence on each stream.
     *
     * @param loops the client's event loops; as many connections are opened
     * @param port where the server listens
     * @param request the request; all responses to it have one size
     * @param streams the number of streams, at least one
     * @return the load, to be closed by the caller
     */
    public static GrpcStreamLoad ofSequences(ClientEventLoops loops, int port, ModelInferRequest request, int streams) {
        return connect(loops, port, streams, lane -> {
            long id = 1L + lane;
            return new GrpcStreamLane.Messages(
                    sequence(request, id, true, false),
                    sequence(request, id, false, false),
                    sequence(request, id, false, true));
        });
    }

    /** Connects; the requests belong to no sequence. The parameters are as for {@link #ofSequences}. */
    public static GrpcStreamLoad ofRequests(ClientEventLoops loops, int port, ModelInferRequest request, int streams) {
        byte[] bytes = request.toByteArray();
        return connect(loops, port, streams, _ -> new GrpcStreamLane.Messages(bytes, bytes, bytes));
    }

    private static GrpcStreamLoad connect(
            ClientEventLoops loops, int port, int streams, IntFunction<GrpcStreamLane.Messages> of) {
        List<ManagedChannel> channels = Stream.generate(() -> GrpcLoad.channel(loops, port))
                .limit(Math.min(streams, loops.count()))
                .toList();
        MethodDescriptor<byte[], Integer> method = GRPCInferenceServiceGrpc.getModelStreamInferMethod().toBuilder(
                        PreparedMessage.REQUEST, PreparedMessage.RESPONSE_SIZE)
                .build();
        List<GrpcStreamLane> lanes = IntStream.range(0, streams)
                .mapToObj(lane -> new GrpcStreamLane(channels.get(lane % channels.size()), method, of.apply(lane)))
                .toList();
        return new GrpcStreamLoad(streams + " streams", channels, lanes);
    }

    private static byte[] sequence(ModelInferRequest request, long id, boolean start, boolean end) {
        return request.toBuilder()
                .putParameters(
                        "sequence_id",
                        InferParameter.newBuilder().setInt64Param(id).build())
                .putParameters(
                        "sequence_start",
                        InferParameter.newBuilder().setBoolParam(start).build())
                .putParameters(
                        "sequence_end",
                        InferParameter.newBuilder().setBoolParam(end).build())
                .build()
                .toByteArray();
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        return Lane.run(name, lanes, time);
    }

    @Override
    public void close() {
        channels.forEach(ManagedChannel::shutdownNow);
    }
}
