package dev.nereid.scheduler.cache;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.request.CompletionListener;
import dev.nereid.scheduler.request.FinishedResponse;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

/**
 * Inserts the response of a missed request into the cache. Confined to the thread that executes the request, and then to
 * the one that completes it, such as that of a sender.
 *
 * <p>A response is not inserted if the loads that made it are not the loads of the key: a model was loaded again
 * meanwhile.
 */
final class CacheMiss implements CompletionListener {
    private final CachedSubmission gate;
    private final CacheKey key;
    private final String loadId;
    private final long lookupNanos;
    private boolean isOther;

    /** Creates the insertion of a response. */
    CacheMiss(CachedSubmission gate, CacheKey key, String loadId, long lookupNanos) {
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
    private record Insert(CacheMiss miss, TensorBuffer copy, long startNanos, AtomicBoolean completed)
            implements InsertObserver {
        Insert(CacheMiss miss, TensorBuffer copy, long startNanos) {
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
