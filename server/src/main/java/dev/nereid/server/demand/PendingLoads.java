package dev.nereid.server.demand;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The requests that wait for loads, in a queue for each model. Safe for use by any thread; never blocks for long: the
 * lock guards the queues, and nothing foreign is called with it.
 *
 * <p>All requests for a model share one acquisition, from the first that waits until the queue is empty. Requests that
 * arrive while the queue is submitted go to its end, so that the requests of a sequence keep their order.
 */
final class PendingLoads {
    /** The requests for one model. Its mutable fields are guarded by the lock of the queues. */
    private final class Queue {
        private final String model;
        private final Acquisition acquisition;
        private final Set<LoadWaiter> requests = new LinkedHashSet<>();

        /** The number of cancelled requests that keep their place. Counted until the queue is open. */
        private int cancelled;

        /** Set when the model is loaded, and the requests are submitted one after another. */
        private boolean isOpen;

        /** Set while a thread ends the sequences of cancelled requests, since no other request waits. */
        private boolean isEnding;

        /** Returns whether requests still wait for the model. */
        private boolean isNeeded() {
            return isOpen || requests.size() > cancelled;
        }

        Queue(String model) {
            this.model = model;
            acquisition = new Acquisition(group.apply(model), (_, failure) -> decided(this, failure));
        }
    }

    private final Function<String, List<String>> group;
    private final Consumer<Acquisition> begin;
    private final Consumer<Acquisition> end;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Map<String, Queue> queues = new HashMap<>();

    /** The number of waiting requests, written with the lock. */
    private final AtomicInteger waiting = new AtomicInteger();

    /**
     * Creates queues without requests.
     *
     * @param group returns the models that are loaded with a model, itself included
     * @param begin begins an acquisition for the first request of a queue
     * @param end ends an acquisition: its requests are submitted, or none waits any more
     */
    PendingLoads(Function<String, List<String>> group, Consumer<Acquisition> begin, Consumer<Acquisition> end) {
        this.group = group;
        this.begin = begin;
        this.end = end;
    }

    void add(String model, LoadWaiter request) {
        Queue queue;
        boolean isFirst;
        lock.lock();
        try {
            queue = queues.get(model);
            isFirst = queue == null;
            if (queue == null) {
                queue = new Queue(model);
                queues.put(model, queue);
            }
            queue.requests.add(request);
            waiting.incrementAndGet();
        } finally {
            lock.unlock();
        }
        if (isFirst) {
            begin.accept(queue.acquisition);
        }
    }

    /**
     * Removes a request that waits no more. Without another request, the acquisition of the model ends. A request that
     * is being submitted stays until that is done; a cancelled one of a sequence stays until its turn, or until no
     * other request waits.
     */
    void remove(String model, LoadWaiter request) {
        Queue queue;
        lock.lock();
        try {
            queue = queues.get(model);
            if (queue == null || queue.isOpen || !queue.requests.contains(request)) {
                return;
            }
            if (request.endsSequence()) {
                queue.cancelled++;
            } else {
                queue.requests.remove(request);
                waiting.decrementAndGet();
            }
        } finally {
            lock.unlock();
        }
        LoadWaiter cancelled = null;
        do {
            cancelled = nextCancelled(queue, cancelled);
            if (cancelled != null) {
                cancelled.submit();
            }
        } while (cancelled != null);
    }

    /**
     * Returns the next cancelled request of a queue in which no other one waits, and ends the queue behind the last. The
     * one before stays in the queue until then, so that later requests do not overtake it.
     */
    private @Nullable LoadWaiter nextCancelled(Queue queue, @Nullable LoadWaiter before) {
        lock.lock();
        try {
            if (!queue.isOpen && before != null && queue.requests.remove(before)) {
                queue.cancelled--;
                waiting.decrementAndGet();
            }
            if (queue.isNeeded()) {
                queue.isEnding = false;
                return null;
            }
            if (before == null && queue.isEnding) {
                return null;
            }
            queue.isEnding = true;
            if (!queue.requests.isEmpty()) {
                return queue.requests.iterator().next();
            }
            if (!queues.remove(queue.model, queue)) {
                return null;
            }
        } finally {
            lock.unlock();
        }
        end.accept(queue.acquisition);
        return null;
    }

    /** Returns whether requests wait for a model, or are being submitted. */
    boolean isWaiting(String model) {
        if (waiting.get() == 0) {
            return false;
        }
        lock.lock();
        try {
            return queues.containsKey(model);
        } finally {
            lock.unlock();
        }
    }

    int waiting() {
        return waiting.get();
    }

    private void decided(Queue queue, @Nullable InferenceException failure) {
        if (failure == null) {
            try {
                submitAll(queue);
            } finally { // or the model would be held for ever
                end.accept(queue.acquisition);
            }
        } else {
            take(queue).forEach(request -> request.refuse(failure));
        }
    }

    private void submitAll(Queue queue) {
        for (LoadWaiter next = next(queue, null); next != null; next = next(queue, next)) {
            next.submit();
        }
    }

    /** Returns the next request to be submitted; the one before stays in the queue until then, so that it is seen. */
    private @Nullable LoadWaiter next(Queue queue, @Nullable LoadWaiter before) {
        lock.lock();
        try {
            queue.isOpen = true;
            if (before != null && queue.requests.remove(before)) {
                waiting.decrementAndGet();
            }
            if (queue.requests.isEmpty()) {
                queues.remove(queue.model, queue);
                return null;
            }
            return queue.requests.iterator().next();
        } finally {
            lock.unlock();
        }
    }

    private List<LoadWaiter> take(Queue queue) {
        lock.lock();
        try {
            List<LoadWaiter> all = new ArrayList<>(queue.requests);
            queue.requests.clear();
            queues.remove(queue.model, queue);
            waiting.addAndGet(-all.size());
            return all;
        } finally {
            lock.unlock();
        }
    }

    /** Refuses all requests that still wait, as the server is closed. */
    void close(InferenceException reason) {
        List<Queue> all;
        lock.lock();
        try {
            all = List.copyOf(queues.values());
        } finally {
            lock.unlock();
        }
        all.forEach(queue -> take(queue).forEach(request -> request.refuse(reason)));
    }
}
