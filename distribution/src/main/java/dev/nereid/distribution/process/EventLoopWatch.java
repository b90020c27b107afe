package dev.nereid.distribution.process;

import dev.nereid.api.ThreadStack;
import dev.nereid.server.instance.ExecutingInstance;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports blocked and ended event loops, once each; blocked ones with the stack and the executing model. Confined to the
 * thread of the watchdog, except the heartbeats.
 *
 * <p>Each check submits a heartbeat task to every loop that has run the one before. The first task, which reports only
 * the thread of the loop, is submitted at once: so watching begins before a loop runs anything that may block.
 */
final class EventLoopWatch {
    /** Maximum time without a heartbeat. */
    static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(2);

    private static final Logger LOG = LoggerFactory.getLogger(EventLoopWatch.class);

    private final List<Heartbeat> heartbeats = new ArrayList<>();
    private final Function<Thread, Optional<ExecutingInstance>> instances;
    private final Function<Thread, StackTraceElement[]> stacks;
    private final Report report;
    private final Consumer<String> ended;

    /** Receives the report of a blocked event loop. */
    @FunctionalInterface
    interface Report {
        /**
         * Reports a blocked loop, on the thread of the watchdog.
         *
         * @param stack its stack, read while the instance executed
         * @param elapsedNanos the time since the heartbeat was submitted
         */
        void onBlocked(
                Thread thread, StackTraceElement[] stack, Optional<ExecutingInstance> instance, long elapsedNanos);
    }

    /**
     * Watches event loops, and writes reports to the log.
     *
     * @param ended receives the name of the thread of each loop that has ended, once
     */
    EventLoopWatch(
            Iterable<? extends Executor> loops,
            Function<Thread, Optional<ExecutingInstance>> instances,
            Consumer<String> ended) {
        this(loops, instances, Thread::getStackTrace, EventLoopWatch::log, ended);
    }

    /**
     * Watches event loops.
     *
     * @param stacks returns the stack of a thread
     * @param ended receives the name of the thread of each loop that has ended, once
     */
    EventLoopWatch(
            Iterable<? extends Executor> loops,
            Function<Thread, Optional<ExecutingInstance>> instances,
            Function<Thread, StackTraceElement[]> stacks,
            Report report,
            Consumer<String> ended) {
        loops.forEach(loop -> heartbeats.add(new Heartbeat(loop)));
        this.instances = instances;
        this.stacks = stacks;
        this.report = report;
        this.ended = ended;
    }

    /** Checks each loop; to be called about once a second. */
    void check(long nowNanos) {
        for (Heartbeat beat : heartbeats) {
            check(beat, nowNanos);
        }
    }

    private void check(Heartbeat beat, long nowNanos) {
        Thread thread = beat.thread;
        if (beat.hasEnded()) {
            if (!beat.endReported) {
                beat.endReported = true;
                ended.accept(thread == null ? "event loop" : thread.getName());
            }
            return;
        }
        long elapsed = nowNanos - beat.sentNanos;
        if (!beat.pending) {
            beat.send(nowNanos);
        } else if (!beat.reported && thread != null && elapsed >= LIMIT_NANOS) {
            report(beat, thread, elapsed);
        }
    }

    /** Reports a blocked loop, unless it goes on: the stack may be that of another execution then. */
    private void report(Heartbeat beat, Thread thread, long elapsed) {
        Optional<ExecutingInstance> instance = instances.apply(thread);
        StackTraceElement[] stack = stacks.apply(thread);
        if (beat.pending && instances.apply(thread).equals(instance)) {
            beat.reported = true;
            report.onBlocked(thread, stack, instance, elapsed);
        }
    }

    private static void log(
            Thread thread, StackTraceElement[] stack, Optional<ExecutingInstance> instance, long elapsed) {
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
                .log(
                        "event loop is blocked (thread '{}', model '{}', version {}, instance '{}', after {} ms)",
                        thread.getName(),
                        instance.map(ExecutingInstance::model).orElse("-"),
                        instance.map(executing -> String.valueOf(executing.version()))
                                .orElse("-"),
                        instance.map(ExecutingInstance::instance).orElse("-"),
                        TimeUnit.NANOSECONDS.toMillis(elapsed));
    }

    /** Heartbeat task of one event loop. */
    private static final class Heartbeat implements Runnable {
        private final Executor loop;
        private long sentNanos;
        private boolean reported;
        private boolean refused;
        private boolean endReported;
        private volatile boolean pending;
        private volatile @Nullable Thread thread;

        Heartbeat(Executor loop) {
            this.loop = loop;
            execute(() -> thread = Thread.currentThread());
        }

        void send(long nowNanos) {
            sentNanos = nowNanos;
            reported = false;
            pending = true;
            execute(this);
        }

        private void execute(Runnable task) {
            try {
                loop.execute(task);
            } catch (RejectedExecutionException e) { // the loop has ended
                refused = true;
            }
        }

        /** Returns whether the loop runs no more tasks. */
        boolean hasEnded() {
            Thread known = thread;
            return refused || (known != null && !known.isAlive());
        }

        @Override
        public void run() {
            pending = false;
        }
    }
}
