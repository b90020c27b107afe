package dev.nereid.benchmarks.load;

import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * gRPC workload with a fixed number of calls or streams in flight. Owned by, and confined to, the thread that measures.
 */
public final class GrpcLoad implements Workload, AutoCloseable {
    /** More requests than a lane ever sends. */
    private static final long FIRST_IDS = 1L << 40;

    private final String name;
    private final List<ManagedChannel> channels;
    private final List<? extends Lane> lanes;

    private GrpcLoad(String name, List<ManagedChannel> channels, List<? extends Lane> lanes) {
        this.name = name;
        this.channels = channels;
        this.lanes = lanes;
    }

    /**
     * Connects, and checks by a call that the server returns the request's contents. The caller closes the load.
     *
     * @param loops the client's event loops; as many connections are opened, or fewer if there are fewer calls
     */
    public static GrpcLoad connect(
            String name, ClientEventLoops loops, int port, ModelInferRequest request, int inFlight) throws IOException {
        return connect(name, loops, port, List.of(request), "", inFlight);
    }

    /**
     * Connects, and checks by one call of each kind that the server returns the contents. The caller closes the load.
     *
     * @param loops the client's event loops; as many connections are opened, or fewer if there are fewer calls
     * @param requests the requests, sent in rotation
     * @param id the placeholder in requests that is replaced by a new number each time; empty for none
     */
    public static GrpcLoad connect(
            String name, ClientEventLoops loops, int port, List<ModelInferRequest> requests, String id, int inFlight)
            throws IOException {
        int connections = Math.min(inFlight, loops.count());
        List<ManagedChannel> channels =
                Stream.generate(() -> channel(loops, port)).limit(connections).toList();
        try {
            List<GrpcRequest> checked = new ArrayList<>();
            for (ModelInferRequest request : requests) {
                int size = check(channels.getFirst(), request);
                checked.add(GrpcRequest.of(request.toByteArray(), id, size));
            }
            for (ManagedChannel channel : channels) {
                check(channel, requests.getFirst());
            }
            MethodDescriptor<byte[], Integer> method = GRPCInferenceServiceGrpc.getModelInferMethod().toBuilder(
                            PreparedMessage.REQUEST, PreparedMessage.RESPONSE_SIZE)
                    .build();
            List<GrpcLane> lanes = IntStream.range(0, inFlight)
                    .mapToObj(lane ->
                            new GrpcLane(channels.get(lane % connections), method, copies(checked), lane * FIRST_IDS))
                    .toList();
            return new GrpcLoad(name, channels, lanes);
        } catch (IOException e) {
            channels.forEach(ManagedChannel::shutdownNow);
            throw e;
        }
    }

    /**
     * Connects, for requests over streams, one at a time on each. A period of load is one sequence on each stream. The
     * caller closes the load.
     *
     * @param loops the client's event loops; as many connections are opened
     * @param request the request; all responses to it have one size
     */
    public static GrpcLoad ofSequences(ClientEventLoops loops, int port, ModelInferRequest request, int streams) {
        return connectStreams(loops, port, streams, lane -> {
            long id = 1L + lane;
            return new GrpcStreamLane.Messages(
                    sequence(request, id, true, false),
                    sequence(request, id, false, false),
                    sequence(request, id, false, true));
        });
    }

    /** Connects, as for sequences; the requests belong to none. The parameters are as for {@link #ofSequences}. */
    public static GrpcLoad ofStreamedRequests(
            ClientEventLoops loops, int port, ModelInferRequest request, int streams) {
        byte[] bytes = request.toByteArray();
        return connectStreams(loops, port, streams, _ -> new GrpcStreamLane.Messages(bytes, bytes, bytes));
    }

    private static GrpcLoad connectStreams(
            ClientEventLoops loops, int port, int streams, IntFunction<GrpcStreamLane.Messages> of) {
        List<ManagedChannel> channels = Stream.generate(() -> channel(loops, port))
                .limit(Math.min(streams, loops.count()))
                .toList();
        MethodDescriptor<byte[], Integer> method = GRPCInferenceServiceGrpc.getModelStreamInferMethod().toBuilder(
                        PreparedMessage.REQUEST, PreparedMessage.RESPONSE_SIZE)
                .build();
        List<GrpcStreamLane> lanes = IntStream.range(0, streams)
                .mapToObj(lane -> new GrpcStreamLane(channels.get(lane % channels.size()), method, of.apply(lane)))
                .toList();
        return new GrpcLoad(streams + " streams", channels, lanes);
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

    /** Copies requests for a lane: each lane writes ids into its own bytes. */
    private static List<GrpcRequest> copies(List<GrpcRequest> requests) {
        return requests.stream().map(GrpcRequest::copy).toList();
    }

    private static ManagedChannel channel(ClientEventLoops loops, int port) {
        return NettyChannelBuilder.forAddress(Loopback.at(port))
                .eventLoopGroup(loops.workers())
                .channelFactory(loops.clientChannels())
                .directExecutor()
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .usePlaintext()
                .build();
    }

    /** Returns the size of a correct response. */
    private static int check(ManagedChannel channel, ModelInferRequest request) throws IOException {
        try {
            ModelInferResponse response =
                    GRPCInferenceServiceGrpc.newBlockingStub(channel).modelInfer(request);
            if (!response.getRawOutputContentsList().equals(request.getRawInputContentsList())) {
                throw new IOException("ModelInfer: other contents (expected: those of the request)");
            }
            return response.getSerializedSize();
        } catch (StatusRuntimeException e) {
            throw new IOException("ModelInfer: " + e.getMessage(), e);
        }
    }
}
