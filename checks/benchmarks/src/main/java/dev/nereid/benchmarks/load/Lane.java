package dev.nereid.benchmarks.load;

import dev.nereid.benchmarks.report.Sample;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Sends one request after another in each period of load. Started and read by the thread that measures. */
interface Lane {
    /** How long the last requests may take after the period of load. */
    long GRACE_SECONDS = 30;

    /**
     * Begins a period of load.
     *
     * @param end when no further request is counted, on the scale of {@link System#nanoTime()}
     * @param ended counted down when the last request has ended
     */
    void start(long end, CountDownLatch ended);

    /** Returns the latencies of the period. To be read when the period has ended. */
    LatencyHistogram latencies();

    /** Returns the error that stopped the lane early. To be read when the period has ended. */
    Optional<String> failure();

    /**
     * Runs a period of load on all lanes at once. Blocks. Errors have the name of the load.
     *
     * @throws IOException if a request failed, or none completed
     */
    static Sample run(String name, List<? extends Lane> lanes, Duration time) throws IOException, InterruptedException {
        CountDownLatch ended = new CountDownLatch(lanes.size());
        long end = System.nanoTime() + time.toNanos();
        lanes.forEach(lane -> lane.start(end, ended));
        if (!ended.await(time.toSeconds() + GRACE_SECONDS, TimeUnit.SECONDS)) {
            throw new IOException(
                    name + ": " + ended.getCount() + " requests not completed within " + GRACE_SECONDS + " s");
        }
        LatencyHistogram latencies = new LatencyHistogram();
        lanes.forEach(lane -> latencies.add(lane.latencies()));
        Optional<String> failure =
                lanes.stream().map(Lane::failure).flatMap(Optional::stream).findFirst();
        if (failure.isPresent() || latencies.total() == 0) {
            throw new IOException(name + ": " + failure.orElse("no request completed in time"));
        }
        return latencies.sample(time.toNanos());
    }
}
