package dev.nereid.backend.python;

import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The limit of time of one execution: past it the process prints the stacks of its threads, and is killed. Safe for use by any
 * thread.
 */
final class ExecutionLimit implements AutoCloseable {
    /** How long the process has to print its stacks. */
    private static final Duration STACKS = Duration.ofMillis(300);

    private final PythonProcess process;
    private final Duration limit;
    private final Executor executor;
    private final AtomicBoolean over = new AtomicBoolean();
    private volatile @Nullable DelayedTask timer;

    private ExecutionLimit(PythonProcess process, Duration limit, Executor executor) {
        this.process = process;
        this.limit = limit;
        this.executor = executor;
    }

    static ExecutionLimit start(PythonProcess process, Duration limit, Executor executor) {
        ExecutionLimit started = new ExecutionLimit(process, limit, executor);
        started.timer = DelayedTask.start(limit, executor, started::printStacks);
        return started;
    }

    private void printStacks() {
        if (over.get()) {
            return;
        }
        process.printStacks();
        DelayedTask next = DelayedTask.start(STACKS, executor, this::kill);
        timer = next;
        if (over.get()) {
            next.cancel();
        }
    }

    private void kill() {
        if (over.compareAndSet(false, true)) {
            process.kill("the execution took longer than " + seconds(limit) + " s (EXECUTION_TIMEOUT_SECONDS)");
        }
    }

    private static String seconds(Duration duration) {
        return duration.toMillisPart() == 0
                ? Long.toString(duration.toSeconds())
                : duration.toSeconds() + "." + "%03d".formatted(duration.toMillisPart());
    }

    /** Ends the time: the execution has returned. */
    @Override
    public void close() {
        over.set(true);
        DelayedTask waiting = timer;
        if (waiting != null) {
            waiting.cancel();
        }
    }
}
