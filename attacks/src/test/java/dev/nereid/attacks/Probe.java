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
 * Clients that do nothing wrong: each sends a small inference five times a second, with other numbers each time, and notes
 * what was not answered, not in time, or not with these numbers. Safe for use by any thread; its threads end with its
 * close.
 */
final class Probe implements AutoCloseable {
    /** Within this everybody is to be answered, on a machine that the server and its clients have for themselves. */
    private static final Duration MAX_LATENCY = Duration.ofSeconds(1);

    private static final Duration PERIOD = Duration.ofMillis(200);
    private static final int MAX_SAMPLES = 8;

    /** How a client talks. */
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
     * @param ways how
     * @param connector connects the clients
     * @param mayBeFull whether a refusal is no failure while the memory for tensors is full
     */
    static Probe start(VictimServer server, Set<Transport> ways, Connector connector, boolean mayBeFull) {
        Probe probe = new Probe(server, connector, mayBeFull);
        for (Transport way : ways) {
            probe.threads.add(Thread.ofPlatform().name("probe/" + way).daemon().start(() -> probe.run(way)));
        }
        return probe;
    }

    /** Ends, once the requests on their way have been answered. */
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

    /** Returns what went wrong, with answers that took longer than that. */
    List<String> failures(double maxSeconds) {
        List<String> all = new ArrayList<>(failures);
        List<String> slow = late.stream()
                .filter(answer -> answer.nanos > maxSeconds * 1e9)
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
        return responses + " answers, slowest " + slowestNanos.get() / 1_000_000 + " ms, " + refusals
                + " refused while memory was full, " + failureCount + " failed";
    }

    private void run(Transport way) {
        Client asker =
                way == Transport.HTTP || way == Transport.HTTP_KEEP_ALIVE ? new ClientOverHttp() : new ClientOverGrpc();
        for (int i = 0; !over; i++) {
            long before = System.nanoTime();
            try {
                asker.infer(Tensor.floats(way + "-" + i, i, -i, 0.5f));
                long nanos = System.nanoTime() - before;
                slowestNanos.accumulateAndGet(nanos, Math::max);
                if (nanos > MAX_LATENCY.toNanos()) {
                    late.add(new Late(way, before - start, nanos));
                }
                responses.incrementAndGet();
                if (!Transport.KEEPING.contains(way)) {
                    asker.close();
                }
            } catch (IOException | RuntimeException e) {
                recordFailure(way, before, "after " + (System.nanoTime() - before) / 1_000_000 + " ms: " + e);
                asker.close();
            }
            Await.pause(PERIOD.minusNanos(System.nanoTime() - before));
        }
        asker.close();
    }

    private void recordFailure(Transport way, long when, String what) {
        if (failureCount.incrementAndGet() <= MAX_SAMPLES) {
            failures.add(way + " at " + (when - start) / 1_000_000 + " ms: " + what);
        }
    }

    /** Checks an answer, or that there was no memory for it. */
    private void check(boolean isAnswer, boolean isRefusal, String text, byte[] output, Tensor input)
            throws IOException {
        if (isRefusal && mayBeFull && FullMemory.explains(text, server)) {
            refusals.incrementAndGet();
        } else if (!isAnswer) {
            throw new IOException(text);
        } else if (!Arrays.equals(output, input.data())) {
            throw new IOException("answered with " + Arrays.toString(output));
        }
    }

    /** An answer that took longer than it may on a machine that nobody else uses. */
    private record Late(Transport way, long atNanos, long nanos) {
        @Override
        public String toString() {
            return way + " at " + atNanos / 1_000_000 + " ms: answered after " + nanos / 1_000_000 + " ms";
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
            RawHttp.Response answer = connection.exchange(RawHttp.infer(Models.ECHO, input));
            check(
                    answer.status() == 200,
                    answer.status() == 503,
                    answer.status() + " " + text(answer),
                    answer.tensors(),
                    input);
        }

        private static String text(RawHttp.Response answer) {
            return answer.status() == 200 ? "" : answer.text();
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
