package dev.nereid.scheduler.cache;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.TensorSpec;
import dev.nereid.spi.cache.ResponseCache;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Completes requests of a model from the response cache. Lock-free; safe for use by any thread.
 *
 * <p>A call is looked up before it is queued. A hit is answered at once and never queued; a miss goes to the queue, and
 * its answer, if it is a success, to the cache before the client is told. A cache that fails is as one that is not
 * there, but for a line in the log, one a minute.
 */
public final class CacheGate {
    /** Enqueues requests that the cache cannot complete. */
    public interface MissHandler {
        /**
         * Queues a call.
         *
         * @param request the call
         * @param submitting whether this is still the submission of the call, on the thread that submits it
         */
        void enqueue(ScheduledRequest request, boolean submitting);
    }

    /**
     * Inputs above this size, in bytes, are not hashed by the thread that submits: it takes a quarter of a millisecond.
     */
    static final long LARGE_INPUTS = 256L << 10;

    private static final long LOG_INTERVAL_NANOS = 60_000_000_000L;
    private static final Logger LOG = LoggerFactory.getLogger(CacheGate.class);

    private final ModelScope model;
    private final CacheAccess access;
    private final CacheCounter counter;
    private final LongSupplier nanoTime;
    private final MissHandler missHandler;
    private final AtomicBoolean logged = new AtomicBoolean();
    private final AtomicLong loggedNanos = new AtomicLong();

    public CacheGate(
            ModelScope model, CacheAccess access, CacheCounter counter, LongSupplier nanoTime, MissHandler queue) {
        this.model = model;
        this.access = access;
        this.counter = counter;
        this.nanoTime = nanoTime;
        this.missHandler = queue;
    }

    /**
     * Answers a call from the cache, or queues it; now, or later on another thread.
     *
     * @param request a call that was submitted just now, by this thread
     */
    public void submit(ScheduledRequest request) {
        if (!isCacheable(request.checked())) {
            missHandler.enqueue(request, true);
            return;
        }
        CacheLookup lookup = new CacheLookup(this, request, nanoTime.getAsLong());
        // Whoever finds an answer tells it, which may take long too.
        if (request.isHeavy() || request.checked().inputBytes() > LARGE_INPUTS) {
            lookup.startOn(access.background());
        } else {
            lookup.start();
        }
    }

    /**
     * Says whether the answer to a call may come from the cache: it depends on nothing but what the key stands for, and
     * everything lies in memory that nobody else changes.
     */
    private boolean isCacheable(CheckedRequest call) {
        if (call.outputs().hasTargets() || call.options().sequence().isPresent()) {
            return false;
        }
        if (call.inputs().useClientMemory()) {
            return false;
        }
        if (!call.inputs().areOnHost()) {
            reportDeviceInput(call.inputs());
            return false;
        }
        return true;
    }

    private void reportDeviceInput(List<NamedTensor> inputs) {
        inputs.stream()
                .filter(input -> !input.tensor().place().isHost())
                .findFirst()
                .ifPresent(input -> report("input '" + input.name() + "' lies in "
                        + input.tensor().place() + " (expected: memory of the host)"));
    }

    /** Says whether outputs from the cache are an answer to a request of this model. */
    boolean fits(ScheduledRequest request, List<NamedTensor> outputs) {
        for (NamedTensor output : outputs) {
            Optional<TensorSpec> spec = model.settings().output(output.name());
            if (spec.isEmpty()
                    || spec.get().type() != output.tensor().type()
                    || !request.checked().requestsOutput(output.name())) {
                return false;
            }
        }
        return true;
    }

    ResponseCache cache() {
        return access.cache();
    }

    ModelScope model() {
        return model;
    }

    CacheCounter counter() {
        return counter;
    }

    MissHandler missHandler() {
        return missHandler;
    }

    long now() {
        return nanoTime.getAsLong();
    }

    /** Logs a trouble, unless another one was logged a short time ago. */
    void report(String trouble) {
        long now = nanoTime.getAsLong();
        long last = loggedNanos.get();
        boolean due = logged.compareAndSet(false, true)
                || (now - last >= LOG_INTERVAL_NANOS && loggedNanos.compareAndSet(last, now));
        if (due) {
            loggedNanos.compareAndSet(last, now);
            LOG.atError()
                    .addKeyValue("model", model.settings().name())
                    .addKeyValue("version", model.settings().version())
                    .addKeyValue("reason", trouble)
                    .log("cache of responses not used");
        }
    }
}
