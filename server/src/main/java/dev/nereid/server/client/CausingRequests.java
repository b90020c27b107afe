package dev.nereid.server.client;

import dev.nereid.api.call.CallChain;
import dev.nereid.scheduler.client.CausingRequest;
import dev.nereid.spi.Batch;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The requests in execution that cause one request to another model. There are none, one, or the requests of a batch.
 * Immutable; used as the backend may use them.
 *
 * @param requests the requests of clients, without null requests
 */
record CausingRequests(List<InferenceRequest> requests) {
    static final CausingRequests NONE = new CausingRequests(List.of());

    CausingRequests {
        requests = List.copyOf(requests);
    }

    static CausingRequests of(InferenceRequest request) {
        return new CausingRequests(List.of(request));
    }

    static CausingRequests of(Batch batch) {
        return new CausingRequests(batch.requests().stream()
                .filter(request -> !request.isNullRequest())
                .toList());
    }

    /** Returns the id of the only request; empty if there are several, or none. */
    String id() {
        return requests.size() == 1 ? requests.getFirst().id() : "";
    }

    /** Returns the latest deadline; none if a request has none. */
    OptionalLong deadlineNanos() {
        OptionalLong latest = OptionalLong.empty();
        for (InferenceRequest request : requests) {
            OptionalLong deadline = request.deadlineNanos();
            if (deadline.isEmpty()) {
                return OptionalLong.empty();
            }
            if (latest.isEmpty() || deadline.getAsLong() - latest.getAsLong() > 0) {
                latest = deadline;
            }
        }
        return latest;
    }

    /** Returns the models of their chains and their execution, which wait for a request on their behalf. */
    CallChain chain() {
        CallChain chain = CallChain.NONE;
        Set<Object> joined = Collections.newSetFromMap(new IdentityHashMap<>());
        for (InferenceRequest request : requests) {
            if (request instanceof CausingRequest causing && joined.add(causing.waiting())) {
                chain = chain.join(causing.chain());
            }
        }
        return chain;
    }

    /** Keeps the memory of an input of the requests; returns the end of that. Empty for memory of others. */
    Optional<Runnable> keep(Tensor tensor) {
        for (InferenceRequest request : requests) {
            Optional<Runnable> kept =
                    request instanceof CausingRequest causing ? causing.keep(tensor) : Optional.empty();
            if (kept.isPresent()) {
                return kept;
            }
        }
        return Optional.empty();
    }

    /**
     * Registers an action that runs once when all requests are cancelled. Of several, a request does not count that is
     * complete now, such as one that its backend failed. After an exception nothing is registered.
     *
     * @return removes it from all of them
     */
    CancelHook onCancel(Runnable action) {
        if (requests.size() == 1) {
            return requests.getFirst().onCancel(action);
        }
        List<InferenceRequest> open =
                requests.stream().filter(request -> !isCompleted(request)).toList();
        Cancellations cancellations = new Cancellations(new AtomicInteger(open.size()), new AtomicBoolean(), action);
        List<CancelHook> hooks = new ArrayList<>(open.size());
        boolean added = false;
        try {
            for (InferenceRequest request : open) {
                AtomicBoolean counted = new AtomicBoolean();
                hooks.add(request.onCancel(() -> cancellations.cancelled(counted)));
                if (isCompleted(request)) { // meanwhile: the action may never run
                    cancellations.count(counted);
                }
            }
            added = true;
        } finally {
            if (!added) {
                hooks.forEach(CancelHook::close);
            }
        }
        return () -> hooks.forEach(CancelHook::close);
    }

    private static boolean isCompleted(InferenceRequest request) {
        return request instanceof CausingRequest causing && causing.isCompleted();
    }

    /**
     * Counts the requests that are cancelled or complete, each once. Safe for use by any thread.
     *
     * @param left the requests that are not counted
     * @param any whether one is cancelled
     * @param action runs after the last one, if one is cancelled
     */
    private record Cancellations(AtomicInteger left, AtomicBoolean any, Runnable action) {
        void cancelled(AtomicBoolean counted) {
            any.set(true);
            count(counted);
        }

        void count(AtomicBoolean counted) {
            if (counted.compareAndSet(false, true) && left.decrementAndGet() == 0 && any.get()) {
                action.run();
            }
        }
    }
}
