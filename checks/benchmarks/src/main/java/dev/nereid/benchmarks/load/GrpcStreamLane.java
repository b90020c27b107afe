package dev.nereid.benchmarks.load;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/**
 * Sends one request after another on a gRPC stream, which lasts for a period of load. The next one is sent at the
 * response to the last one, on the channel's event loop; the first one on the measuring thread. Confined to them in this
 * order.
 */
final class GrpcStreamLane implements Lane {
    /** The serialized requests of a stream: the first one, those between, and the last one. Immutable. */
    static final class Messages {
        private final byte[] first;
        private final byte[] next;
        private final byte[] last;

        /** Takes the arrays over. */
        Messages(byte[] first, byte[] next, byte[] last) {
            this.first = first;
            this.next = next;
            this.last = last;
        }
    }

    private final Channel channel;
    private final MethodDescriptor<byte[], Integer> method;
    private final Messages messages;

    private final LatencyHistogram latencies = new LatencyHistogram();
    private Status failure = Status.OK;
    private CountDownLatch done = new CountDownLatch(0);
    private long endNanos;

    /** Creates a lane, which executes on the channel's event loop. */
    GrpcStreamLane(Channel channel, MethodDescriptor<byte[], Integer> method, Messages messages) {
        this.channel = channel;
        this.method = method;
        this.messages = messages;
    }

    @Override
    public void start(long end, CountDownLatch ended) {
        latencies.clear();
        failure = Status.OK;
        endNanos = end;
        done = ended;
        ClientCall<byte[], Integer> call = channel.newCall(method, CallOptions.DEFAULT);
        call.start(new Listener(call), new Metadata());
        call.request(Integer.MAX_VALUE);
        call.sendMessage(messages.first);
    }

    @Override
    public LatencyHistogram latencies() {
        return latencies;
    }

    @Override
    public Optional<String> failure() {
        return failure.isOk() ? Optional.empty() : Optional.of(failure.toString());
    }

    private final class Listener extends ClientCall.Listener<Integer> {
        private final ClientCall<byte[], Integer> call;
        private long sentNanos = System.nanoTime();
        private int size = -1;
        private boolean last;
        private @Nullable String wrong;

        Listener(ClientCall<byte[], Integer> call) {
            this.call = call;
        }

        @Override
        public void onMessage(Integer message) {
            if (size < 0) {
                size = message;
            } else if (message != size) {
                wrong = "response: " + message + " bytes (expected: " + size + " bytes, as the first one)";
                call.cancel(wrong, null);
                return;
            }
            if (last) {
                return;
            }
            long now = System.nanoTime();
            if (now - endNanos < 0) {
                latencies.record(now - sentNanos);
                sentNanos = now;
                call.sendMessage(messages.next);
            } else {
                last = true;
                call.sendMessage(messages.last);
                call.halfClose();
            }
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            failure = wrong == null ? status : Status.INTERNAL.withDescription(wrong);
            done.countDown();
        }
    }
}
