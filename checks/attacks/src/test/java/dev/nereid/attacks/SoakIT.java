package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Sends valid, broken, cancelled and unread requests on both protocols. They are sent for {@code soak.duration} after a
 * warm-up: each valid one gets a correct response, each refusal is explained, and the server uses no more memory at the
 * end than after the warm-up.
 */
final class SoakIT {
    private static final Duration DURATION = duration(System.getProperty("soak.duration", "30s"));

    /** Compiled code and the pools of the transport grow to their size within a minute or two. */
    private static final Duration WARM_UP_ROUND = Duration.ofSeconds(20);

    private static final int MAX_WARM_UP_ROUNDS = 6;
    private static final long LEVEL = 12L << 20;

    private static final Duration QUIET_TIMEOUT = Duration.ofSeconds(20);

    private static final int HEAP_MEASUREMENTS = 5;
    private static final long HEAP_MARGIN = 12L << 20;
    private static final long RESIDENT_MARGIN = 64L << 20;
    private static final int THREAD_MARGIN = 4;
    private static final int DESCRIPTOR_MARGIN = 4;

    /** Every refusal for load that this traffic may meet, and why. */
    private static final Map<Pattern, String> EXPLAINED = Map.of(
            Pattern.compile("the client reads the stream too slowly: .*"),
            "a decoupled model is 64 MiB ahead of a client that does not read; only its stream ends",
            Pattern.compile(".*(no memory for a tensor|bytes in flight).*"),
            "the limit of tensor memory is reached; only while responses wait for clients that do not read");

    @TempDir
    private Path directory;

    @Test
    void nothingGrows() throws Exception {
        try (VictimServer server = VictimServer.startToBeMeasured(directory)) {
            Outcomes outcomes = new Outcomes();
            Use warm = warmUp(server, outcomes);
            run(server, outcomes, DURATION);
            Use after = Use.of(server);

            System.out.println("SoakIT: warm " + warm + ", at the end " + after);
            outcomes.counts().forEach((outcome, count) -> System.out.println("    " + count + " " + outcome));
            assertThat(outcomes.wrong()).as(() -> server.logEnd(2_000)).isEmpty();
            assertThat(unexplained(outcomes)).isEmpty();
            assertThat(after.heap()).as("heap after a collection").isLessThan(warm.heap() + HEAP_MARGIN);
            assertThat(after.resident()).as("resident memory").isLessThan(warm.resident() + RESIDENT_MARGIN);
            assertThat(after.threads()).as("threads").isLessThanOrEqualTo(warm.threads() + THREAD_MARGIN);
            assertThat(after.descriptors())
                    .as("descriptors")
                    .isLessThanOrEqualTo(warm.descriptors() + DESCRIPTOR_MARGIN);
            assertThat(server.peakResidentBytes()).as("peak memory").isLessThan(VictimServer.MAX_RESIDENT);
            assertThat(server.log().lines().filter(line -> line.contains(" ERROR ")))
                    .isEmpty();
            assertThat(server.logBytes()).as("log").isLessThan(1 << 20);
        }
    }

    /** Runs the same requests until resident memory is level, or for two minutes. */
    private static Use warmUp(VictimServer server, Outcomes outcomes) throws Exception {
        run(server, outcomes, WARM_UP_ROUND);
        Use use = Use.of(server);
        for (int round = 1; round < MAX_WARM_UP_ROUNDS; round++) {
            long before = use.resident();
            run(server, outcomes, WARM_UP_ROUND);
            use = Use.of(server);
            if (use.resident() < before + LEVEL) {
                return use;
            }
        }
        return use;
    }

    private static List<String> unexplained(Outcomes outcomes) {
        return outcomes.refusals().stream()
                .filter(text -> EXPLAINED.keySet().stream()
                        .noneMatch(pattern -> pattern.matcher(text).matches()))
                .collect(Collectors.toList());
    }

    private static void run(VictimServer server, Outcomes outcomes, Duration time) throws Exception {
        long end = System.nanoTime() + time.toNanos();
        List<Thread> threads = new ArrayList<>();
        for (SoakClient client : SoakClient.all(server, outcomes)) {
            threads.add(Thread.ofPlatform().name("soak").daemon().start(() -> client.runUntil(end)));
        }
        for (Thread thread : threads) {
            thread.join(time.plusSeconds(30));
            assertThat(thread.isAlive()).as("a client is still waiting").isFalse();
        }
        Await.until("memory for tensors is free", QUIET_TIMEOUT, () -> server.tensorBytes() == 0);
        Await.until("nothing is pending", QUIET_TIMEOUT, () -> pending(server) == 0);
    }

    private static double pending(VictimServer server) {
        try {
            return server.metric("nv_inference_pending_request_count", "");
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static Duration duration(String text) {
        return Duration.parse("PT" + text);
    }

    /** The memory of an idle server. */
    private record Use(long heap, long resident, long threads, long descriptors) {
        /** Measures the least heap of several collections, since the server still closes connections. */
        static Use of(VictimServer server) throws IOException {
            long heap = Long.MAX_VALUE;
            for (int i = 0; i < HEAP_MEASUREMENTS; i++) {
                Await.pause(Duration.ofSeconds(1));
                heap = Math.min(heap, server.reachableHeapBytes());
            }
            return new Use(heap, server.residentBytes(), server.threads(), server.descriptors());
        }

        @Override
        public String toString() {
            return "heap " + (heap >> 20) + " MB, resident " + (resident >> 20) + " MB, " + threads + " threads, "
                    + descriptors + " descriptors";
        }
    }
}
