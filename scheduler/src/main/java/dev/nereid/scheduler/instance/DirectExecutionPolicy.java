package dev.nereid.scheduler.instance;

import dev.nereid.spi.ModelSettings;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Decides whether submitting threads may execute batches of a model directly. Safe for use by any thread.
 *
 * <p>The declaration of a backend starts a trial: {@value #TRIAL} executions on the threads of the instances have to be
 * short before one is executed directly. An execution is long if it exceeds {@link #MAX_NANOS}; short ones make up for
 * long ones, {@value #FORGIVEN_BY} for each millisecond, since the first execution loads classes, and any thread may
 * have to wait for a processor. Decoupled models are never trusted: they may send responses faster than the thread of
 * their client's connection can write them, which would be the same thread.
 *
 * <p>Three long direct executions that are not made up for end the trust, and an execution that blocks ends it at once,
 * on whatever thread: one that takes {@link #BLOCKED_NANOS}. The model regains trust by short executions on the threads
 * of its instances, since a busy machine makes any execution look long at times: {@value #PROBATION} at first, and twice
 * as many each time, and {@value #MAX_DOUBT} after an execution that blocked. So a backend with a wrong declaration
 * delays submitting threads seldom, and ever more seldom.
 */
public final class DirectExecutionPolicy {
    /** The limit of a short execution, in nanoseconds. */
    static final long MAX_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /** The time from which an execution counts as blocked, in nanoseconds: no wait for a processor lasts that long. */
    static final long BLOCKED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** The time from which a direct execution is a reason for a warning: below, it may be a busy machine. */
    private static final long WARNING_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** The number of short executions on threads of the instances before the first direct one. */
    static final int TRIAL = 64;

    private static final int FORGIVEN_BY = 16;
    private static final int STRIKES = 3;
    private static final int MAX_DOUBT = 1 << 20;
    private static final int PROBATION = 1 << 12;
    private static final int MAX_DOUBLINGS = 8;

    private static final Logger LOG = LoggerFactory.getLogger(DirectExecutionPolicy.class);

    private final ModelSettings model;
    private final String backend;
    /** The number of short executions that are left of the trial, or make up for the long ones. */
    private final AtomicInteger doubt = new AtomicInteger();

    /** The number of long executions that short ones have not made up for. */
    private final AtomicInteger strikes = new AtomicInteger();

    /** The number of times that trust was lost. */
    private final AtomicInteger refutations = new AtomicInteger();

    /** {@code true} if the backend declares its executions short, for a model that is not decoupled. */
    private final boolean declared;

    private final AtomicBoolean trusted = new AtomicBoolean();
    private final AtomicBoolean warned = new AtomicBoolean();

    /** Begins with the trial of the backend's declaration. */
    public DirectExecutionPolicy(ModelSettings model, ExecutionTraits traits) {
        this.model = model;
        this.backend = traits.backend();
        this.declared = traits.shortExecutions() && !model.decoupled();
        doubt.set(TRIAL);
    }

    /** Returns whether the backend declares its executions short, for a model that is not decoupled. */
    boolean areDeclaredShort() {
        return declared;
    }

    /** Returns whether direct execution is allowed. */
    public boolean areTrusted() {
        return trusted.get();
    }

    /**
     * Records the duration of a direct execution.
     *
     * @param deferred whether the backend has deferred the execution, to limit how long it holds a thread: then the
     *     loss of trust is no reason for a warning
     */
    void recordDirect(long nanos, boolean deferred) {
        if (nanos > MAX_NANOS) {
            doubt(nanos);
            if (strikes.incrementAndGet() >= STRIKES || nanos >= BLOCKED_NANOS) {
                refute(nanos, deferred);
            }
        } else if (doubt.get() > 0 && doubt.decrementAndGet() <= 0) {
            strikes.set(0);
        }
    }

    void recordOnInstanceThread(long nanos) {
        if (!declared) {
            return;
        }
        if (areTrusted()) { // long batches are usual here: the queue was not empty
            if (nanos >= BLOCKED_NANOS) {
                refute(nanos, false);
            }
        } else if (nanos > MAX_NANOS) {
            doubt(nanos);
        } else if (doubt.decrementAndGet() <= 0) {
            strikes.set(0);
            trusted.set(true);
        }
    }

    private void doubt(long nanos) {
        int more = (int) Math.min(nanos / MAX_NANOS * FORGIVEN_BY, MAX_DOUBT);
        doubt.updateAndGet(before -> Math.min(before + more, MAX_DOUBT));
    }

    private void refute(long nanos, boolean deferred) {
        if (!areTrusted()) { // by another thread, which was executing as well
            return;
        }
        int probation = nanos >= BLOCKED_NANOS ? MAX_DOUBT : PROBATION << Math.min(refutations.get(), MAX_DOUBLINGS);
        doubt.updateAndGet(before -> Math.max(before, probation)); // first: from then on other threads may lower it
        if (trusted.compareAndSet(true, false)) {
            refutations.incrementAndGet();
            // One warning names the backend; a busy machine may repeat the loss of trust again and again.
            boolean warns = !deferred && nanos >= WARNING_NANOS && !warned.getAndSet(true);
            LOG.atLevel(warns ? Level.WARN : Level.DEBUG)
                    .addKeyValue("model", model.name())
                    .addKeyValue("version", model.version())
                    .addKeyValue("backend", backend)
                    .addKeyValue("micros", TimeUnit.NANOSECONDS.toMicros(nanos))
                    .log(
                            "backend declares its executions short, but they take longer than 1 ms: the model's"
                                    + " instances run on threads of their own until many of them were short (model '{}', version {}, backend '{}')",
                            model.name(),
                            model.version(),
                            backend);
        }
    }
}
