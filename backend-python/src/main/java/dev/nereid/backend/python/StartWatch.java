package dev.nereid.backend.python;

import static java.lang.System.Logger.Level.INFO;

import dev.nereid.backend.python.report.Delays;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Watches starts of processes: logs a start that takes long, and ends one that takes longer than it may. Immutable;
 * safe for use by any thread.
 */
record StartWatch(System.Logger logger, Delays delays, LongSupplier nanoTime) {
    /** The time after which a start is logged, again and again. */
    static final Duration INTERVAL = Duration.ofSeconds(30);

    /** With how many lines the process prints where its threads are. */
    private static final int STACKS_AT = 2;

    /**
     * Watches a start until it is done.
     *
     * @param what the work of the start, such as {@code import and initialize}
     * @param limit how long it may take; empty for no limit
     * @param kill ends the process with a reason
     * @param stacks makes the process print the stacks of its threads, once, after a minute
     */
    void watch(
            CompletableFuture<?> start,
            String instance,
            String what,
            Optional<Duration> limit,
            Consumer<String> kill,
            Runnable stacks) {
        report(start, instance + ": " + what, nanoTime.getAsLong(), 1, stacks);
        limit.ifPresent(longest -> delays.run(longest.toMillis(), () -> {
            if (!start.isDone()) {
                kill.accept(what + " took longer than " + seconds(longest) + " s");
            }
        }));
    }

    private void report(CompletableFuture<?> start, String label, long begin, int count, Runnable stacks) {
        delays.run(INTERVAL.toMillis(), () -> {
            if (!start.isDone()) {
                long seconds = TimeUnit.NANOSECONDS.toSeconds(nanoTime.getAsLong() - begin);
                logger.log(INFO, label + " have taken " + seconds + " s so far");
                if (count == STACKS_AT) {
                    stacks.run();
                }
                report(start, label, begin, count + 1, stacks);
            }
        });
    }

    /** Returns a time in seconds, with a fraction only if it has one. */
    private static String seconds(Duration time) {
        return time.toMillisPart() == 0 ? Long.toString(time.toSeconds()) : Double.toString(time.toMillis() / 1e3);
    }
}
