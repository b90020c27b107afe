package dev.nereid.server.lifecycle;

import dev.nereid.api.ThreadStack;
import dev.nereid.api.statistics.OverdueControl;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.time.Watchdog;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports overdue steps of model loads, and overdue closes, once each. The report has the stack of the thread. Safe for
 * use by any thread.
 */
public final class ModelLoadWatch implements Watchdog.Watched, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelLoadWatch.class);

    private final Supervision supervision;
    private final LongSupplier nanoTime;
    private final Set<Step> steps = ConcurrentHashMap.newKeySet();

    /**
     * Creates the watch of a server's loads.
     *
     * @param supervision the limit of loads, and the watchdog
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
     */
    public ModelLoadWatch(Supervision supervision, LongSupplier nanoTime) {
        this.supervision = supervision;
        this.nanoTime = nanoTime;
        if (!supervision.loadLimit().isZero()) {
            supervision.watchdog().ifPresent(watchdog -> watchdog.add(this));
        }
    }

    /** The step that ends a model or an instance. */
    private static final String CLOSE = "close";

    /** A step of a model load, or a close, on the thread that performs it. Closed at the end of the step. */
    public final class Step implements AutoCloseable {
        private final String model;
        private final OptionalLong version;
        private final String what;
        private final String instance;
        private final Thread thread = Thread.currentThread();
        private final long startNanos = nanoTime.getAsLong();
        private volatile boolean overdue;

        private Step(String model, OptionalLong version, String what, String instance) {
            this.instance = instance;
            this.model = model;
            this.version = version;
            this.what = what;
        }

        private boolean isClose() {
            return what.equals(CLOSE);
        }

        private OverdueControl.Kind kind() {
            return isClose() ? OverdueControl.Kind.CLOSE : OverdueControl.Kind.LOAD;
        }

        @Override
        public void close() {
            steps.remove(this);
        }
    }

    /**
     * Begins a step on the calling thread.
     *
     * @param model the model's name
     * @param version the version that is loaded; empty while the model as a whole is prepared
     * @param what the step, for the log
     * @return the step, to be closed at its end
     */
    public Step begin(String model, OptionalLong version, String what) {
        return begin(new Step(model, version, what, ""));
    }

    /**
     * Begins a close on the calling thread.
     *
     * @param model the model's name
     * @param instance the name of the instance that is closed; empty for the model
     * @return the step, to be closed at its end
     */
    Step beginClose(String model, long version, String instance) {
        return begin(new Step(model, OptionalLong.of(version), CLOSE, instance));
    }

    private Step begin(Step step) {
        steps.add(step);
        return step;
    }

    /**
     * Returns whether the calling thread's step for the model with a name goes on, whichever thread asks; {@code false}
     * for none.
     */
    public BooleanSupplier currentStep(String model) {
        for (Step step : steps) {
            if (step.thread.equals(Thread.currentThread()) && step.model.equals(model)) {
                return () -> steps.contains(step);
            }
        }
        return () -> false;
    }

    /**
     * Returns the reason if the load or the close of a version is overdue. Empty if it is not overdue.
     *
     * @param closes whether the version is being closed
     */
    String overdueReason(String model, OptionalLong version, boolean closes) {
        for (Step step : steps) {
            if (step.overdue
                    && step.isClose() == closes
                    && step.model.equals(model)
                    && (step.version.isEmpty() || step.version.equals(version))) {
                return "takes longer than " + limit().toSeconds() + " s to " + (closes ? CLOSE : "load");
            }
        }
        return "";
    }

    /** Counts the overdue loads and closes of each version. */
    List<OverdueControl> overdue() {
        Map<OverdueControl, Long> counts = new TreeMap<>(OverdueControl.ORDER);
        for (Step step : steps) {
            if (step.overdue) {
                counts.merge(new OverdueControl(step.model, step.version, step.kind(), 0), 1L, Long::sum);
            }
        }
        return counts.entrySet().stream()
                .map(entry -> entry.getKey().withCount(entry.getValue()))
                .toList();
    }

    private Duration limit() {
        return supervision.loadLimit();
    }

    @Override
    public void check(long nowNanos) {
        for (Step step : steps) {
            long elapsed = nowNanos - step.startNanos;
            if (!step.overdue && elapsed >= limit().toNanos()) {
                report(step, elapsed);
            }
        }
    }

    /** Reports all steps that have not ended, as the server stops without waiting for them. */
    public void reportUnfinished() {
        for (Step step : steps) {
            log(
                    step,
                    nanoTime.getAsLong() - step.startNanos,
                    (step.isClose() ? "close" : "load") + " has not ended within the exit timeout");
        }
    }

    private void report(Step step, long elapsed) {
        step.overdue = true;
        log(step, elapsed, (step.isClose() ? "close" : "load") + " takes longer than its limit");
    }

    private void log(Step step, long elapsed, String event) {
        StackTraceElement[] stack = step.thread.getStackTrace();
        if (!steps.contains(step)) { // ended by now: the stack may be that of another step
            return;
        }
        LOG.atWarn()
                .addKeyValue("model", step.model)
                .addKeyValue("version", step.version.isPresent() ? step.version.getAsLong() : "-")
                .addKeyValue("instance", step.instance.isEmpty() ? "-" : step.instance)
                .addKeyValue("step", step.what)
                .addKeyValue("elapsedMillis", TimeUnit.NANOSECONDS.toMillis(elapsed))
                .setCause(ThreadStack.of(step.thread, stack))
                .log(
                        event + " (model '{}', version {}, instance '{}', step {}, after {} ms)",
                        step.model,
                        step.version.isPresent() ? step.version.getAsLong() : "-",
                        step.instance.isEmpty() ? "-" : step.instance,
                        step.what,
                        TimeUnit.NANOSECONDS.toMillis(elapsed));
    }

    /** Reports nothing any more. */
    @Override
    public void close() {
        supervision.watchdog().ifPresent(watchdog -> watchdog.remove(this));
    }
}
