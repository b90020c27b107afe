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
 * <p>A request is looked up before it is queued. A hit completes at once and is never queued. A miss goes to the queue;
 * its response, if it is a success, is inserted before its delivery. A failing cache is bypassed and logged, once a
 * minute at most.
 */
public final class CachedSubmission {
    /** Enqueues requests that the cache cannot complete. */
    public interface MissHandler {
        /** Queues a request; {@code submitting} if the caller is the submitting thread, during the submission. */
        void enqueue(ScheduledRequest request, boolean submitting);
    }

    /** The maximum input bytes that the submitting thread hashes. It takes a quarter of a millisecond. */
    static final long MAX_DIRECT_BYTES = 256L << 10;

    private static final long LOG_INTERVAL_NANOS = 60_000_000_000L;
    private static final Logger LOG = LoggerFactory.getLogger(CachedSubmission.class);

    private final ModelScope model;
    private final CacheAccess access;
    private final LongSupplier nanoTime;
    private final MissHandler missHandler;
    private final AtomicBoolean logged = new AtomicBoolean();
    private final AtomicLong loggedNanos = new AtomicLong();

    public CachedSubmission(ModelScope model, CacheAccess access, LongSupplier nanoTime, MissHandler missHandler) {
        this.model = model;
        this.access = access;
        this.nanoTime = nanoTime;
        this.missHandler = missHandler;
    }

    /** Completes a just submitted request from the cache, or queues it: now, or later on another thread. */
    public void submit(ScheduledRequest request) {
        if (!isCacheable(request.checked())) {
            missHandler.enqueue(request, true);
            return;
        }
        Optional<String> loadId = access.loadId().get();
        if (loadId.isEmpty()) {
            missHandler.enqueue(request, true);
            return;
        }
        CacheLookup lookup = new CacheLookup(this, request, loadId.get(), nanoTime.getAsLong());
        // The thread of the lookup delivers a hit, which may take long too.
        if (request.needsInstanceThread() || request.checked().inputBytes() > MAX_DIRECT_BYTES) {
            lookup.startOn(access.background());
        } else {
            lookup.start();
        }
    }

    /**
     * Returns whether a request may be completed from the cache. It may if its response depends on the key alone, and
     * its inputs lie in memory that no client can change.
     */
    private boolean isCacheable(CheckedRequest request) {
        if (request.outputs().hasTargets() || request.options().sequence().isPresent()) {
            return false;
        }
        if (request.inputs().useClientMemory()) {
            return false;
        }
        if (!request.inputs().areOnHost()) {
            reportDeviceInput(request.inputs());
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

    MissHandler missHandler() {
        return missHandler;
    }

    long now() {
        return nanoTime.getAsLong();
    }

    /** Returns the text of what a cache has thrown. A fatal error is handled. */
    String reason(Throwable thrown) {
        model.fatalErrors().check(thrown);
        return thrown.toString();
    }

    /** Logs a problem, once a minute at most. */
    void report(String problem) {
        long now = nanoTime.getAsLong();
        long last = loggedNanos.get();
        boolean logs = logged.compareAndSet(false, true)
                || (now - last >= LOG_INTERVAL_NANOS && loggedNanos.compareAndSet(last, now));
        if (logs) {
            loggedNanos.compareAndSet(last, now);
            LOG.atError()
                    .addKeyValue("model", model.settings().name())
                    .addKeyValue("version", model.settings().version())
                    .addKeyValue("reason", problem)
                    .log(
                            "response cache not used (model '{}', version {}): {}",
                            model.settings().name(),
                            model.settings().version(),
                            problem);
        }
    }
}
