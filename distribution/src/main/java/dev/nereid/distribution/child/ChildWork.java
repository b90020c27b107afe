package dev.nereid.distribution.child;

import dev.nereid.server.lifecycle.ModelLoadOptions.LoadObserver.Work;
import io.vertx.core.json.JsonObject;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.locks.ReentrantLock;

/** Records what a child process has begun and ended, from its messages. Safe for use by any thread. */
final class ChildWork {
    private final ReentrantLock lock = new ReentrantLock();
    private final Map<Long, Begun> inProgress = new LinkedHashMap<>();
    private Optional<Begun> last = Optional.empty();
    private OptionalInt status = OptionalInt.empty();
    private boolean withheld;

    /** A work for a model. */
    record Begun(String model, String backend, Work work) {
        String text() {
            return "backend '" + backend + "' " + (work == Work.LOAD ? "loaded" : "completed") + " model '" + model
                    + "'";
        }
    }

    void accept(JsonObject message) {
        lock.lock();
        try {
            if (message.containsKey(CheckOrder.BEGIN)) {
                Begun begun = new Begun(
                        message.getString(CheckOrder.BEGIN),
                        message.getString(CheckOrder.BACKEND),
                        Work.valueOf(message.getString(CheckOrder.WORK)));
                inProgress.put(message.getLong(CheckOrder.NUMBER), begun);
                last = Optional.of(begun);
            } else if (message.containsKey(CheckOrder.END)) {
                inProgress.remove(message.getLong(CheckOrder.END));
            } else if (message.containsKey(CheckOrder.ENDED)) {
                status = OptionalInt.of(message.getInteger(CheckOrder.ENDED));
            }
        } finally {
            lock.unlock();
        }
    }

    /** Records that the child prints no report though it has checked all models. */
    void withhold() {
        lock.lock();
        try {
            withheld = true;
        } finally {
            lock.unlock();
        }
    }

    boolean isWithheld() {
        lock.lock();
        try {
            return withheld;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the status of the command; empty if it did not end. The process may have ended by a signal since. */
    OptionalInt status() {
        lock.lock();
        try {
            return status;
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether a work has not ended. */
    boolean isInProgress() {
        lock.lock();
        try {
            return !inProgress.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the works that may have ended the process: the works in progress in their order, else the last one, after
     * which nothing began; empty if nothing was begun.
     */
    List<Begun> suspects() {
        lock.lock();
        try {
            return inProgress.isEmpty() ? last.stream().toList() : new ArrayList<>(inProgress.values());
        } finally {
            lock.unlock();
        }
    }
}
