package dev.nereid.distribution;

import dev.nereid.api.ThreadStack;
import dev.nereid.server.repository.ExecutingInstance;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports an event loop that stands still, once, with the stack of its thread and the model whose code it executes.
 * Confined to the thread of the watchdog, but for the answers of the loops.
 *
 * <p>Each loop is given a task as often as the watchdog looks, if it has done the one before. The first, which only says
 * what its thread is, is given at once: so a loop is to be watched before it is given anything that may stand.
 */
final class LoopWatch {
    /** For how long a loop may be at something else. */
    static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(2);

    private static final Logger LOG = LoggerFactory.getLogger(LoopWatch.class);

    private final List<Beat> beats = new ArrayList<>();
    private final Function<Thread, Optional<ExecutingInstance>> instances;
    private final Report report;

    /** Takes the report of an event loop that stands still. */
    @FunctionalInterface
    interface Report {
        /**
         * Called on the thread of the watchdog.
         *
         * @param thread the thread of the loop
         * @param instance whose execution the thread is in, if any
         * @param elapsedNanos for how long the loop has done nothing else
         */
        void standsStill(Thread thread, Optional<ExecutingInstance> instance, long elapsedNanos);
    }

    /**
     * Watches event loops, and writes reports to the log.
     *
     * @param loops the loops
     * @param instances tells the instance whose execution a thread is in
     */
    LoopWatch(Iterable<? extends Executor> loops, Function<Thread, Optional<ExecutingInstance>> instances) {
        this(loops, instances, LoopWatch::log);
    }

    /**
     * Watches event loops.
     *
     * @param loops the loops
     * @param instances tells the instance whose execution a thread is in
     * @param report takes the reports
     */
    LoopWatch(
            Iterable<? extends Executor> loops,
            Function<Thread, Optional<ExecutingInstance>> instances,
            Report report) {
        loops.forEach(loop -> beats.add(new Beat(loop)));
        this.instances = instances;
        this.report = report;
    }

    /** Looks at each loop; to be called once a second or so. */
    void check(long nowNanos) {
        for (Beat beat : beats) {
            check(beat, nowNanos);
        }
    }

    private void check(Beat beat, long nowNanos) {
        Thread thread = beat.thread;
        long elapsed = nowNanos - beat.sentNanos;
        if (!beat.pending) {
            beat.send(nowNanos);
        } else if (!beat.reported && thread != null && elapsed >= LIMIT_NANOS) {
            beat.reported = true;
            report.standsStill(thread, instances.apply(thread), elapsed);
        }
    }

    private static void log(Thread thread, Optional<ExecutingInstance> instance, long elapsed) {
        StackTraceElement[] stack = thread.getStackTrace();
        LOG.atWarn()
                .addKeyValue("thread", thread.getName())
                .addKeyValue("model", instance.map(ExecutingInstance::model).orElse("-"))
                .addKeyValue(
                        "version",
                        instance.map(executing -> String.valueOf(executing.version()))
                                .orElse("-"))
                .addKeyValue(
                        "instance", instance.map(ExecutingInstance::instance).orElse("-"))
                .addKeyValue("elapsedMillis", TimeUnit.NANOSECONDS.toMillis(elapsed))
                .setCause(ThreadStack.of(thread, stack))
                .log("event loop stands still");
    }

    /** The task of one loop. */
    private static final class Beat implements Runnable {
        private final Executor loop;
        private long sentNanos;
        private boolean reported;
        private volatile boolean pending;
        private volatile @Nullable Thread thread;

        Beat(Executor loop) {
            this.loop = loop;
            loop.execute(() -> thread = Thread.currentThread());
        }

        void send(long nowNanos) {
            sentNanos = nowNanos;
            reported = false;
            pending = true;
            try {
                loop.execute(this);
            } catch (RejectedExecutionException e) { // at its end
                pending = false;
            }
        }

        @Override
        public void run() {
            pending = false;
        }
    }
}
