package dev.nereid.scheduler;

import dev.nereid.spi.ModelSettings;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the executions of a model are as short as its backend says, so that threads which submit requests may run
 * them. Safe for use by any thread.
 *
 * <p>The word of the backend counts until it is refuted by three executions longer than {@link #MOST_NANOS}. Short
 * ones make good for long ones, {@value #FORGIVEN_BY} for each millisecond: the first execution loads classes, and any
 * thread may have to wait for a processor. Decoupled models are never trusted: they may send responses faster than the
 * thread of their client's connection can write them, which would be the very same thread.
 */
final class ShortExecutions {
    /** What is still short, in nanoseconds. */
    static final long MOST_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private static final Logger LOG = LoggerFactory.getLogger(ShortExecutions.class);
    private static final int FORGIVEN_BY = 16;
    private static final int STRIKES = 3;
    private static final int MOST_DOUBT = 1 << 20;

    private final ModelSettings model;
    private final String backend;
    /** How many short executions have to come until the long ones are forgotten. */
    private final AtomicInteger doubt = new AtomicInteger();

    /** Long executions that are not forgotten. */
    private final AtomicInteger strikes = new AtomicInteger();

    private final AtomicBoolean trusted;

    /**
     * Begins with what the backend says.
     *
     * @param terms the name of the backend, and whether it calls its executions short
     */
    ShortExecutions(ModelSettings model, BackendTerms terms) {
        this.model = model;
        this.backend = terms.backend();
        this.trusted = new AtomicBoolean(terms.shortExecutions() && !model.decoupled());
    }

    /** Says whether the thread that submits a request may run its execution. */
    boolean areTrusted() {
        return trusted.get();
    }

    /** Takes note of how long an execution took on a thread that submits requests. */
    void took(long nanos) {
        if (nanos > MOST_NANOS) {
            int more = (int) Math.min(nanos / MOST_NANOS * FORGIVEN_BY, MOST_DOUBT);
            doubt.updateAndGet(before -> Math.min(before + more, MOST_DOUBT));
            if (strikes.incrementAndGet() >= STRIKES) {
                refute(nanos);
            }
        } else if (doubt.get() > 0 && doubt.decrementAndGet() <= 0) {
            strikes.set(0);
        }
    }

    private void refute(long nanos) {
        if (trusted.compareAndSet(true, false)) {
            LOG.atWarn()
                    .addKeyValue("model", model.name())
                    .addKeyValue("version", model.version())
                    .addKeyValue("backend", backend)
                    .addKeyValue("micros", TimeUnit.NANOSECONDS.toMicros(nanos))
                    .log("backend declares its executions short, but they take longer than 1 ms: from now on the"
                            + " model's instances run on threads of their own");
        }
    }
}
