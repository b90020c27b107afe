package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Tests clients that send requests and never read. Pending responses are limited, and freed when the clients have
 * disconnected.
 */
final class UnreadResponsesIT {
    private static final Duration FLOOD = Duration.ofSeconds(5);

    /** Allowance for pools and caches of a heap that was in use. */
    private static final long HEAP_MARGIN = 48L << 20;

    @RegisterExtension
    static final Victim victim = Victim.with("--response-stall-timeout-secs=4");

    @Test
    void pipelinedRequestsWithoutReading() throws Exception {
        victim.attackDelaying(3, UnreadResponsesIT::pipelineRequests);
    }

    @Test
    @Tag("open") // other clients wait for up to 1.4 s; see docs/status.md
    void pipelinedRequestsDelayOthersByASecondAtMost() throws Exception {
        victim.attack(UnreadResponsesIT::pipelineRequests);
    }

    private static void pipelineRequests() throws Exception {
        byte[] request = RawHttp.infer(Models.ECHO, Tensor.floats("unread", 1, 2, 3, 4));
        freesTheHeap(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().http(), 500)) {
                connections.flood(repeated(request, 64 << 10), FLOOD);
            }
        });
    }

    @Test
    void pipelinedRequestsToTheMetricsPort() throws Exception {
        victim.attack(() -> freesTheHeap(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().metrics(), 300)) {
                connections.flood(repeated(RawHttp.get("/metrics"), 16 << 10), FLOOD);
            }
        }));
    }

    @Test
    void callsWithAWindowOfZero() throws Exception {
        victim.attackDelaying(3, UnreadResponsesIT::callWithAWindowOfZero);
    }

    @Test
    @Tag("open") // other clients wait for up to 1.6 s; see docs/status.md
    void callsWithAWindowOfZeroDelayOthersByASecondAtMost() throws Exception {
        victim.attack(UnreadResponsesIT::callWithAWindowOfZero);
    }

    private static void callWithAWindowOfZero() throws Exception {
        byte[] message = InferMessage.framed(InferMessage.request(Models.ECHO, Tensor.floats("unread", 1, 2, 3, 4)));
        java.io.ByteArrayOutputStream all = new java.io.ByteArrayOutputStream();
        all.writeBytes(Frames.preface(0));
        for (int i = 0; i < 1_000; i++) {
            all.writeBytes(Frames.wholeCall(2 * i + 1, Frames.INFER, message));
        }
        freesTheHeap(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().grpc(), 200)) {
                sendOnce(connections, all.toByteArray());
                Await.pause(Duration.ofSeconds(2));
            }
        });
    }

    @Test
    void largeResponsesAreGivenUp() throws Exception {
        byte[] http = RawHttp.infer(Models.ECHO, Tensor.zeros(4 << 20));
        byte[] message = InferMessage.framed(InferMessage.request(Models.ECHO, Tensor.zeros(32 << 10)));
        java.io.ByteArrayOutputStream grpc = new java.io.ByteArrayOutputStream();
        grpc.writeBytes(Frames.preface(0));
        for (int i = 0; i < 20; i++) {
            grpc.writeBytes(call(2 * i + 1, message));
        }
        victim.fill(() -> freesTheHeap(() -> {
            try (HostileConnections overHttp =
                            HostileConnections.connect(victim.server().http(), 60);
                    HostileConnections overGrpc =
                            HostileConnections.connect(victim.server().grpc(), 60)) {
                sendOnce(overGrpc, grpc.toByteArray());
                sendOnce(overHttp, http);
                Await.until(
                        "memory of unread responses is free while the clients stay connected",
                        Duration.ofSeconds(12),
                        () -> victim.server().tensorBytes() < 1 << 20);
            }
        }));
    }

    @Test
    void streamsOfAModelThatRespondsForEver() throws Exception {
        ByteBuffer count = ByteBuffer.allocate(Integer.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(100_000_000);
        Tensor input = new Tensor("unread", "INT32", new long[] {1}, count.array());
        byte[] message = InferMessage.framed(InferMessage.request(Models.SQUARE, "IN", input));
        victim.fill(() -> freesTheHeap(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().grpc(), 24)) {
                sendOnce(
                        connections,
                        RawHttp.concat(Frames.preface(0), Frames.wholeCall(1, Frames.STREAM_INFER, message)));
                Await.pause(FLOOD);
            }
        }));
    }

    @Test
    void eventStreamsOfAModelThatRespondsForEver() throws Exception {
        byte[] request =
                RawHttp.post("/v2/models/" + Models.SQUARE + "/generate_stream", RawHttp.ascii("{\"IN\":100000000}"));
        victim.fill(() -> freesTheHeap(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().http(), 24)) {
                sendOnce(connections, request);
                Await.pause(FLOOD);
            }
        }));
    }

    /** Runs an action, and fails unless it releases all memory. */
    private static void freesTheHeap(Victim.Attack attack) throws Exception {
        VictimServer server = victim.server();
        long before = server.reachableHeapBytes();
        attack.run();
        Await.until("memory for tensors free", Duration.ofSeconds(15), () -> server.tensorBytes() < 1 << 20);
        long[] after = new long[1];
        boolean free = Await.holds(Duration.ofSeconds(15), () -> {
            try {
                after[0] = server.reachableHeapBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return after[0] < before + HEAP_MARGIN;
        });
        assertThat(free)
                .as("heap after a collection: " + (after[0] >> 20) + " MB (before: " + (before >> 20) + ")")
                .isTrue();
    }

    private static void sendOnce(HostileConnections connections, byte[] bytes) {
        connections.sendAll(bytes, FLOOD);
    }

    private static byte[] call(int stream, byte[] message) {
        java.io.ByteArrayOutputStream call = new java.io.ByteArrayOutputStream();
        call.writeBytes(Frames.call(stream, Frames.INFER));
        int half = message.length / 3;
        for (int at = 0; at < message.length; at += half) {
            int size = Math.min(half, message.length - at);
            byte[] part = java.util.Arrays.copyOfRange(message, at, at + size);
            call.writeBytes(Frames.data(stream, at + size == message.length, part));
        }
        return call.toByteArray();
    }

    private static byte[] repeated(byte[] request, int size) {
        int count = Math.max(1, size / request.length);
        byte[] all = new byte[count * request.length];
        for (int i = 0; i < count; i++) {
            System.arraycopy(request, 0, all, i * request.length, request.length);
        }
        return all;
    }
}
