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
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The requests in execution that cause one request to another model: none, one, or those of a batch. Immutable; used as the
 * backend may use them.
 *
 * @param requests the requests of clients among them
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

    /** Returns what waits for a request on their behalf: the models of their chains, and their execution. */
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

    /**
     * Keeps the memory of an input of the requests.
     *
     * @return ends that; empty if the tensor lies in no memory of theirs
     */
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
     * Registers an action that runs once when all requests are cancelled. Of several, those do not count that are complete
     * now, such as one that its backend failed.
     *
     * @return removes it from all of them
     */
    CancelHook onCancel(Runnable action) {
        if (requests.size() == 1) {
            return requests.getFirst().onCancel(action);
        }
        List<InferenceRequest> open = requests.stream()
                .filter(request -> !(request instanceof CausingRequest causing && causing.isCompleted()))
                .toList();
        AtomicInteger left = new AtomicInteger(open.size());
        List<CancelHook> hooks = new ArrayList<>(open.size());
        for (InferenceRequest request : open) {
            hooks.add(request.onCancel(() -> {
                if (left.decrementAndGet() == 0) {
                    action.run();
                }
            }));
        }
        return () -> hooks.forEach(CancelHook::close);
    }
}
