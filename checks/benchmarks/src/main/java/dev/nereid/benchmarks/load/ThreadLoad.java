package dev.nereid.benchmarks.load;

import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Workload of threads, each of which makes one call after another and waits for its end. A single caller is called by
 * the measuring thread. Owned by, and confined to, that thread.
 */
public final class ThreadLoad implements Workload {
    /** A call that blocks until it ends. By one thread in each period of load. */
    public interface Caller {
        void call() throws IOException;
    }

    private final String name;
    private final List<Caller> callers;

    /** Prepares a load for a row of the table. */
    public ThreadLoad(String name, List<? extends Caller> callers) {
        this.name = name;
        this.callers = List.copyOf(callers);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        List<Turn> turns = callers.stream().map(Turn::new).toList();
        long start = System.nanoTime();
        turns.forEach(turn -> turn.endNanos = start + time.toNanos());
        if (turns.size() == 1) {
            turns.getFirst().run();
        } else {
            List<Thread> threads = IntStream.range(0, turns.size())
                    .mapToObj(i -> Thread.ofPlatform().name("caller " + i).start(turns.get(i)))
                    .toList();
            for (Thread thread : threads) {
                thread.join();
            }
        }
        long nanos = System.nanoTime() - start;
        LatencyHistogram latencies = new LatencyHistogram();
        for (Turn turn : turns) {
            IOException failure = turn.failure;
            if (failure != null) {
                throw new IOException(name + ": " + failure.getMessage(), failure);
            }
            latencies.add(turn.latencies);
        }
        return latencies.sample(nanos);
    }

    /** The calls of one thread in one period. Read by the measuring thread after the end of that thread. */
    private static final class Turn implements Runnable {
        private final Caller caller;
        private final LatencyHistogram latencies = new LatencyHistogram();
        private long endNanos;
        private @Nullable IOException failure;

        Turn(Caller caller) {
            this.caller = caller;
        }

        @Override
        public void run() {
            try {
                latencies.record(caller, endNanos);
            } catch (IOException e) {
                failure = e;
            }
        }
    }
}
