package dev.nereid.benchmarks.load;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

/**
 * Sends one gRPC call after another. The next one starts at the end of the last one, on the channel's event loop; the
 * first one starts on the measuring thread. Confined to them in this order: each call is started by one thread and
 * ends, through the channel's queue, on the other.
 */
final class GrpcLane implements Lane {
    private final Channel channel;
    private final MethodDescriptor<byte[], Integer> method;
    private final List<GrpcRequest> requests;

    private final LatencyHistogram latencies = new LatencyHistogram();
    private Status failure = Status.OK;
    private CountDownLatch done = new CountDownLatch(0);
    private long endNanos;
    private long count;

    /**
     * Creates a lane, which executes on the channel's event loop and sends the requests in rotation.
     *
     * @param first the number of its first request, by which its ids differ from the ids of other lanes
     */
    GrpcLane(Channel channel, MethodDescriptor<byte[], Integer> method, List<GrpcRequest> requests, long first) {
        this.channel = channel;
        this.method = method;
        this.requests = requests;
        count = first;
    }

    @Override
    public void start(long end, CountDownLatch ended) {
        latencies.clear();
        failure = Status.OK;
        endNanos = end;
        done = ended;
        call();
    }

    @Override
    public LatencyHistogram latencies() {
        return latencies;
    }

    @Override
    public Optional<String> failure() {
        return failure.isOk() ? Optional.empty() : Optional.of(failure.toString());
    }

    private void call() {
        GrpcRequest request = requests.get((int) (count % requests.size()));
        ClientCall<byte[], Integer> call = channel.newCall(method, CallOptions.DEFAULT);
        call.start(new Listener(System.nanoTime(), request.responseSize()), new Metadata());
        // One more than expected: else a missing end of the responses would show only at the end of the call.
        call.request(2);
        call.sendMessage(request.bytes(count++));
        call.halfClose();
    }

    private void ended(Status status, long startNanos) {
        long now = System.nanoTime();
        if (!status.isOk()) {
            failure = status;
        } else if (now - endNanos < 0) {
            latencies.record(now - startNanos);
            call();
            return;
        }
        done.countDown();
    }

    private final class Listener extends ClientCall.Listener<Integer> {
        private final long startNanos;
        private final int responseSize;
        private int size = -1;

        Listener(long startNanos, int responseSize) {
            this.startNanos = startNanos;
            this.responseSize = responseSize;
        }

        @Override
        public void onMessage(Integer message) {
            size = message;
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            boolean wrong = status.isOk() && size != responseSize;
            ended(
                    wrong
                            ? Status.INTERNAL.withDescription(
                                    "response: " + size + " bytes (expected: " + responseSize + " bytes)")
                            : status,
                    startNanos);
        }
    }
}
