package dev.nereid.attacks;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Well-behaved clients that record missing, late and wrong responses. Each client sends a small inference five times a
 * second, with other numbers each time. Safe for use by any thread; its threads end with its close.
 */
final class Probe implements AutoCloseable {
    /** Maximum time to a response, on a machine without other load. */
    private static final Duration MAX_LATENCY = Duration.ofSeconds(1);

    private static final Duration PERIOD = Duration.ofMillis(200);
    private static final int MAX_SAMPLES = 8;

    /** The protocol of a client. */
    enum Transport {
        HTTP,
        HTTP_KEEP_ALIVE,
        GRPC,
        GRPC_KEEP_ALIVE;

        private static final Set<Transport> KEEPING = EnumSet.of(HTTP_KEEP_ALIVE, GRPC_KEEP_ALIVE);
    }

    /** Connects to a port, with encryption or without. */
    @FunctionalInterface
    interface Connector {
        Socket connect(InetSocketAddress address) throws IOException;
    }

    private final VictimServer server;
    private final Connector connector;
    private final boolean mayBeFull;
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicInteger responses = new AtomicInteger();
    private final AtomicInteger refusals = new AtomicInteger();
    private final AtomicLong slowestNanos = new AtomicLong();
    private final Queue<Late> late = new ConcurrentLinkedQueue<>();
    private final AtomicInteger failureCount = new AtomicInteger();
    private final Queue<String> failures = new ConcurrentLinkedQueue<>();
    private final long start = System.nanoTime();
    private volatile boolean over;

    private Probe(VictimServer server, Connector connector, boolean mayBeFull) {
        this.server = server;
        this.connector = connector;
        this.mayBeFull = mayBeFull;
    }

    /**
     * Starts to send.
     *
     * @param transports how
     * @param connector connects the clients
     * @param mayBeFull whether a refusal is no failure while the memory for tensors is full
     */
    static Probe start(VictimServer server, Set<Transport> transports, Connector connector, boolean mayBeFull) {
        Probe probe = new Probe(server, connector, mayBeFull);
        for (Transport transport : transports) {
            probe.threads.add(
                    Thread.ofPlatform().name("probe/" + transport).daemon().start(() -> probe.run(transport)));
        }
        return probe;
    }

    /** Ends when the requests in progress have completed. */
    @Override
    public void close() {
        over = true;
        for (Thread thread : threads) {
            try {
                thread.join(30_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Returns the failures, and the responses that took longer than a limit. */
    List<String> failures(double maxSeconds) {
        List<String> all = new ArrayList<>(failures);
        List<String> slow = late.stream()
                .filter(response -> response.nanos > maxSeconds * 1e9)
                .map(Late::toString)
                .toList();
        slow.stream().limit(MAX_SAMPLES).forEach(all::add);
        if (slow.size() > MAX_SAMPLES) {
            all.add((slow.size() - MAX_SAMPLES) + " more late ones");
        }
        if (failureCount.get() > MAX_SAMPLES) {
            all.add((failureCount.get() - MAX_SAMPLES) + " more failures");
        }
        return all;
    }

    int responses() {
        return responses.get();
    }

    @Override
    public String toString() {
        return responses + " responses, slowest " + slowestNanos.get() / 1_000_000 + " ms, " + refusals
                + " refused while memory was full, " + failureCount + " failed";
    }

    private void run(Transport transport) {
        Client client = transport == Transport.HTTP || transport == Transport.HTTP_KEEP_ALIVE
                ? new ClientOverHttp()
                : new ClientOverGrpc();
        for (int i = 0; !over; i++) {
            long before = System.nanoTime();
            try {
                client.infer(Tensor.floats(transport + "-" + i, i, -i, 0.5f));
                long nanos = System.nanoTime() - before;
                slowestNanos.accumulateAndGet(nanos, Math::max);
                if (nanos > MAX_LATENCY.toNanos()) {
                    late.add(new Late(transport, before - start, nanos));
                }
                responses.incrementAndGet();
                if (!Transport.KEEPING.contains(transport)) {
                    client.close();
                }
            } catch (IOException | RuntimeException e) {
                recordFailure(transport, before, "after " + (System.nanoTime() - before) / 1_000_000 + " ms: " + e);
                client.close();
            }
            Await.pause(PERIOD.minusNanos(System.nanoTime() - before));
        }
        client.close();
    }

    private void recordFailure(Transport transport, long when, String text) {
        if (failureCount.incrementAndGet() <= MAX_SAMPLES) {
            failures.add(transport + " at " + (when - start) / 1_000_000 + " ms: " + text);
        }
    }

    /** Checks a response, or that there was no memory for it. */
    private void check(boolean isResponse, boolean isRefusal, String text, byte[] output, Tensor input)
            throws IOException {
        if (isRefusal && mayBeFull && FullMemory.explains(text, server)) {
            refusals.incrementAndGet();
        } else if (!isResponse) {
            throw new IOException(text);
        } else if (!Arrays.equals(output, input.data())) {
            throw new IOException("response with " + Arrays.toString(output));
        }
    }

    /** A response that exceeded the limit for a machine without other load. */
    private record Late(Transport transport, long atNanos, long nanos) {
        @Override
        public String toString() {
            return transport + " at " + atNanos / 1_000_000 + " ms: response after " + nanos / 1_000_000 + " ms";
        }
    }

    /** One client. Confined to its thread. */
    private interface Client extends AutoCloseable {
        void infer(Tensor input) throws IOException;

        @Override
        void close();
    }

    private final class ClientOverHttp implements Client {
        private RawHttp connection;

        @Override
        public void infer(Tensor input) throws IOException {
            if (connection == null) {
                connection = new RawHttp(connector.connect(server.http()));
            }
            RawHttp.Response response = connection.exchange(RawHttp.infer(Models.ECHO, input));
            check(
                    response.status() == 200,
                    response.status() == 503,
                    response.status() + " " + text(response),
                    response.tensors(),
                    input);
        }

        private static String text(RawHttp.Response response) {
            return response.status() == 200 ? "" : response.text();
        }

        @Override
        public void close() {
            if (connection != null) {
                connection.reset();
                connection = null;
            }
        }
    }

    private final class ClientOverGrpc implements Client {
        private RawHttp2 connection;

        @Override
        public void infer(Tensor input) throws IOException {
            if (connection == null) {
                connection = RawHttp2.over(connector.connect(server.grpc()));
            }
            RawHttp2.Call call = connection.call(Frames.INFER, InferMessage.request(Models.ECHO, input));
            check(
                    call.status() == RawHttp2.Call.OK,
                    call.status() == RawHttp2.Call.UNAVAILABLE,
                    call.status() + " " + call.text(),
                    InferMessage.output(call.message()),
                    input);
        }

        @Override
        public void close() {
            if (connection != null) {
                connection.reset();
                connection = null;
            }
        }
    }
}
