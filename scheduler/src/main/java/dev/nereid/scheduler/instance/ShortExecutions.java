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
 * <p>The word of the backend counts until it is refuted by three executions longer than {@link #MAX_NANOS}. Short ones
 * make good for long ones, {@value #FORGIVEN_BY} for each millisecond: the first execution loads classes, and any
 * thread may have to wait for a processor. Decoupled models are never trusted: they may send responses faster than the
 * thread of their client's connection can write them, which would be the very same thread.
 *
 * <p>A model that was refuted earns its trust again by short executions on the threads of its instances, since a busy
 * machine makes any execution look long at times: {@value #PROBATION} at first, and twice as many each time it is
 * refuted again. A long one among them has to be made good for as ever. So who lies holds up the threads that submit
 * seldom, and ever more seldom.
 */
public final class ShortExecutions {
    /** What is still short, in nanoseconds. */
    static final long MAX_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private static final Logger LOG = LoggerFactory.getLogger(ShortExecutions.class);
    private static final int FORGIVEN_BY = 16;
    private static final int STRIKES = 3;
    private static final int MAX_DOUBT = 1 << 20;
    private static final int PROBATION = 1 << 12;
    private static final int MAX_DOUBLINGS = 8;

    private final ModelSettings model;
    private final String backend;
    /** How many short executions have to come until the long ones are forgotten. */
    private final AtomicInteger doubt = new AtomicInteger();

    /** Long executions that are not forgotten. */
    private final AtomicInteger strikes = new AtomicInteger();

    /** How often the word of the backend was refuted. */
    private final AtomicInteger refutations = new AtomicInteger();

    /** Whether the backend gives its word at all. */
    private final boolean promised;

    private final AtomicBoolean trusted;

    /**
     * Begins with what the backend says.
     *
     * @param terms the name of the backend, and whether it calls its executions short
     */
    public ShortExecutions(ModelSettings model, ExecutionTraits terms) {
        this.model = model;
        this.backend = terms.backend();
        this.promised = terms.shortExecutions() && !model.decoupled();
        this.trusted = new AtomicBoolean(promised);
    }

    /** Says whether the thread that submits a request may run its execution. */
    public boolean areTrusted() {
        return trusted.get();
    }

    /** Takes note of how long an execution took on a thread that submits requests. */
    void recordDirect(long nanos) {
        if (nanos > MAX_NANOS) {
            doubt(nanos);
            if (strikes.incrementAndGet() >= STRIKES) {
                refute(nanos);
            }
        } else if (doubt.get() > 0 && doubt.decrementAndGet() <= 0) {
            strikes.set(0);
        }
    }

    /** Takes note of how long an execution took on a thread of its instance. */
    void recordOnInstanceThread(long nanos) {
        if (!promised || areTrusted()) {
            return;
        }
        if (nanos > MAX_NANOS) {
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

    private void refute(long nanos) {
        if (!areTrusted()) { // by another thread, which was executing as well
            return;
        }
        int probation = PROBATION << Math.min(refutations.get(), MAX_DOUBLINGS);
        doubt.updateAndGet(before -> Math.max(before, probation)); // first: from then on others may make it less
        if (trusted.compareAndSet(true, false)) {
            // One warning tells who lies; a busy machine may have it said again and again.
            LOG.atLevel(refutations.getAndIncrement() == 0 ? Level.WARN : Level.DEBUG)
                    .addKeyValue("model", model.name())
                    .addKeyValue("version", model.version())
                    .addKeyValue("backend", backend)
                    .addKeyValue("micros", TimeUnit.NANOSECONDS.toMicros(nanos))
                    .log("backend declares its executions short, but they take longer than 1 ms: the model's"
                            + " instances run on threads of their own until many of them were short");
        }
    }
}
