package dev.nereid.scheduler.cache;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StackReserve;
import dev.nereid.scheduler.request.FinishedResponse;
import dev.nereid.scheduler.request.ResponseDelivery;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One cache lookup for a request. Lock-free: the first result that sets {@code completed} counts, so that a cache which
 * reports twice does no harm.
 *
 * <p>Holds a reference to the request until then: the request may be cancelled meanwhile, which completes it at once,
 * but its inputs stay as long as they are hashed.
 */
final class CacheLookup implements LookupObserver {
    private final CachedSubmission gate;
    private final ScheduledRequest request;
    private final String loadId;
    private final long startNanos;
    private final AtomicBoolean completed = new AtomicBoolean();

    /** The submitting thread, during the submission: no other thread ever reads itself here. */
    private @Nullable Thread submitter = Thread.currentThread();

    private @Nullable CacheKey key;

    CacheLookup(CachedSubmission gate, ScheduledRequest request, String loadId, long startNanos) {
        this.gate = gate;
        this.request = request;
        this.loadId = loadId;
        this.startNanos = startNanos;
        request.retain();
    }

    /** Starts the lookup; its result is reported on this thread or another one. */
    void start() {
        request.detach(); // before the lookup, which may end at any moment
        lookUp();
        submitter = null;
    }

    /** Starts the lookup on another thread. */
    void startOn(Executor executor) {
        request.detach();
        try {
            executor.execute(this::lookUp);
        } catch (RejectedExecutionException e) {
            missed("the server is stopping");
        }
        submitter = null;
    }

    private void lookUp() {
        try {
            CacheKey made = CacheKeyDigest.of(request.checked(), loadId);
            key = made;
            gate.cache().lookup(made, this);
        } catch (Throwable e) { // of the cache
            missed(gate.reason(e));
        }
    }

    @Override
    public void found(CacheEntry entry) {
        boolean hasStack = false;
        try {
            StackReserve.require();
            hasStack = true;
        } finally {
            if (!hasStack) { // it belongs to this call
                entry.close();
            }
        }
        if (!completed.compareAndSet(false, true)) {
            entry.close();
            return;
        }
        Hit hit;
        try {
            hit = hit(entry);
        } catch (Throwable e) { // of the cache, which returns the content
            withoutEntry(entry, gate.reason(e));
            return;
        }
        if (hit == null) {
            withoutEntry(entry, "entry " + key + " does not match its request");
            return;
        }
        if (request.completeUnqueued(hit)) {
            request.freeInputs(); // the response lies in the entry
        } else {
            hit.discard();
            gate.model().meter().hitUnused(gate.now() - startNanos);
        }
        request.release();
    }

    /** Creates the response, which owns the entry from then on. Returns {@code null} if the entry does not match. */
    private @Nullable Hit hit(CacheEntry entry) {
        List<NamedTensor> outputs = CachedResponse.decode(entry.content()).orElse(null);
        if (outputs == null || !gate.fits(request, outputs)) {
            return null;
        }
        long now = gate.now();
        long queueNanos = startNanos - request.enqueuedNanos();
        long requestNanos = now - request.arrivedNanos();
        Runnable counting = () -> gate.model().meter().hit(queueNanos, now - startNanos, requestNanos);
        List<ReferenceCountedMemory> memory = List.of(ReferenceCountedMemory.of(entry::close, null));
        return new Hit(request, outputs, memory, counting);
    }

    /** Continues as after a miss. */
    private void withoutEntry(CacheEntry entry, String problem) {
        ReferenceCountedMemory.of(entry::close, null).release();
        gate.report(problem);
        missed();
        enqueue();
    }

    /** Counts a miss: the request is executed, or ends without a response. Returns the duration of the lookup. */
    private long missed() {
        long lookupNanos = gate.now() - startNanos;
        gate.model().meter().missed(lookupNanos);
        return lookupNanos;
    }

    @Override
    public void missing() {
        StackReserve.require();
        if (completed.compareAndSet(false, true)) {
            long lookupNanos = missed();
            if (key != null) {
                request.delivery().onCompletion(new Miss(gate, key, loadId, lookupNanos));
            }
            enqueue();
        }
    }

    @Override
    public void failed(String reason) {
        StackReserve.require();
        missed(reason);
    }

    private void missed(String reason) {
        if (completed.compareAndSet(false, true)) {
            gate.report(reason);
            missed();
            enqueue();
        }
    }

    /** Queues the request, unless it was cancelled meanwhile. */
    private void enqueue() {
        try {
            if (request.isWaiting()) {
                gate.missHandler().enqueue(request, Thread.currentThread().equals(submitter));
            }
        } catch (RuntimeException e) { // no other thread completes the request
            request.failUnqueued(e);
        } finally {
            request.release();
        }
    }

    /** A cached response, which is counted at its delivery. */
    private record Hit(FinishedResponse response, Runnable counting) implements ResponseEvent {
        /** Takes over the memory, and retains the request. */
        Hit(
                ScheduledRequest request,
                List<NamedTensor> outputs,
                List<ReferenceCountedMemory> memory,
                Runnable counting) {
            this(new FinishedResponse(request, outputs, memory, Map.of(), true), counting);
        }

        @Override
        public void deliverTo(ResponseObserver observer) {
            counting.run();
            response.deliverTo(observer);
        }

        @Override
        public void discard() {
            response.discard();
        }
    }

    /**
     * Inserts the response of a missed request into the cache. Confined to the thread that executes the request, and then to
     * the one that completes it, such as that of a sender.
     *
     * <p>A response is not inserted if the loads that made it are not the loads of the key: a model was loaded again
     * meanwhile.
     */
    private static final class Miss implements ResponseDelivery.CompletionListener {
        private final CachedSubmission gate;
        private final CacheKey key;
        private final String loadId;
        private final long lookupNanos;
        private boolean isOther;

        /** Creates the insertion of a response. */
        Miss(CachedSubmission gate, CacheKey key, String loadId, long lookupNanos) {
            this.gate = gate;
            this.key = key;
            this.loadId = loadId;
            this.lookupNanos = lookupNanos;
        }

        @Override
        public void executedBy(Supplier<Optional<String>> executing) {
            isOther |= !executing.get().equals(Optional.of(loadId));
        }

        /** Inserts a successful response; called before its delivery. */
        @Override
        public void completed(ResponseEvent event) {
            if (!isOther && event instanceof FinishedResponse response && isReadable(response.outputs())) {
                try {
                    insert(response.outputs());
                } catch (InferenceException e) { // such as refused memory
                    gate.report(e.publicMessage());
                } catch (RuntimeException e) { // the response is delivered all the same
                    gate.report(e.toString());
                }
            }
        }

        private static boolean isReadable(List<NamedTensor> outputs) {
            for (NamedTensor output : outputs) {
                if (!output.tensor().place().isHost()) {
                    return false;
                }
            }
            return true;
        }

        /** Passes a copy to the cache. The insertion may outlast the response, which ends when its client has read it. */
        private void insert(List<NamedTensor> outputs) {
            long startNanos = gate.now();
            TensorBuffer copy = gate.model().memory().allocate(CachedResponse.size(outputs));
            Insert insert = new Insert(this, copy, startNanos);
            try {
                MemorySegment content = copy.segment();
                CachedResponse.encode(outputs, content);
                gate.cache().insert(key, content.asReadOnly(), insert);
            } catch (Throwable e) { // of the cache
                insert.failed(gate.reason(e));
            }
        }

        /** One insertion in progress. Lock-free: the first result that sets {@code completed} ends it. */
        private record Insert(Miss miss, TensorBuffer copy, long startNanos, AtomicBoolean completed)
                implements InsertObserver {
            Insert(Miss miss, TensorBuffer copy, long startNanos) {
                this(miss, copy, startNanos, new AtomicBoolean());
            }

            @Override
            public void stored() {
                end(true);
            }

            @Override
            public void exists() {
                end(false);
            }

            @Override
            public void refused() {
                end(true);
            }

            @Override
            public void failed(String reason) {
                if (end(false)) {
                    miss.gate.report(reason);
                }
            }

            private boolean end(boolean counted) {
                if (!completed.compareAndSet(false, true)) {
                    return false;
                }
                copy.close();
                if (counted) {
                    miss.gate.model().meter().inserted(miss.lookupNanos, miss.gate.now() - startNanos);
                }
                return true;
            }
        }
    }
}
