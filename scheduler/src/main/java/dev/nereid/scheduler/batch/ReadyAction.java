package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.ResponseFlow;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Runs the action that a backend registers for the time when its sender is ready. Lock-free; safe for use by any
 * thread.
 *
 * <p>The action is foreign code. It runs in a task of an executor: never on the thread that opens the flow, delivers,
 * cancels or ends, and never inside the registration. There is one task at a time, which also runs the actions that are
 * registered meanwhile, one after another, as long as the sender is ready.
 *
 * <p>No wake-up is lost: a registration writes the action and then reads the state of the sender; a thread that may
 * have made the sender ready calls {@link #check} after that, which reads the action. At least one sees the other. Checks
 * are counted, and the first thread repeats its check until no other thread wanted one, so a check never nests in
 * another. Only a check registers with the flow of the client, which keeps one action.
 *
 * <p>An action holds a reference to its request until it has run or was replaced. So the instance and the plugin are
 * not closed before, although the sender may be ended.
 */
final class ReadyAction {
    /** The maximum number of actions in one task; the next ones run in a task behind the tasks of other senders. */
    private static final int MAX_ACTIONS_PER_TASK = 64;

    /** The sender of an action, with its request. Safe for use by any thread. */
    interface Sender {
        boolean isReady();

        /** Returns whether responses wait for the thread that delivers. It checks again when none is left. */
        boolean isDelivering();

        ResponseFlow flow();

        /** Adds a reference to the request; returns {@code false} if none was left. */
        boolean tryRetain();

        void release();

        void log(String event, Throwable cause);
    }

    /** A registered action; {@code retains} says whether it holds a reference to the request. */
    private record Registration(Runnable action, boolean retains) {}

    private final Sender sender;
    private final Executor executor;
    private final AtomicReference<@Nullable Registration> registered = new AtomicReference<>();
    private final AtomicReference<@Nullable Registration> registeredByServer = new AtomicReference<>();

    /** Checks since the last one began; 0 while no thread checks. */
    private final AtomicInteger checks = new AtomicInteger();

    /** {@code true} if a task is submitted or runs. */
    private final AtomicBoolean started = new AtomicBoolean();

    ReadyAction(Sender sender, Executor executor) {
        this.sender = sender;
        this.executor = executor;
    }

    /** Registers an action, in place of one that has not run. */
    void set(Runnable action) {
        Registration next = new Registration(requireNonNull(action, "action"), sender.tryRetain());
        release(registered.getAndSet(next));
        check();
    }

    /**
     * Registers an action of the server, beside that of the backend, in place of one that has not run. It is short; it
     * runs on the calling thread if the executor has no other.
     */
    void setServers(Runnable action) {
        Registration next = new Registration(action, sender.tryRetain());
        release(registeredByServer.getAndSet(next));
        check();
    }

    private boolean isEmpty() {
        return registered.get() == null && registeredByServer.get() == null;
    }

    private @Nullable Registration next() {
        Registration next = registeredByServer.getAndSet(null);
        return next == null ? registered.getAndSet(null) : next;
    }

    /** Starts the action if there is one and the sender is ready. Called after each change of the sender's state. */
    void check() {
        if (isEmpty() || checks.getAndIncrement() != 0) {
            return;
        }
        int seen;
        do {
            seen = checks.get();
            runSafely("action of backend not started", this::checkOnce); // a later check tries again
        } while (checks.addAndGet(-seen) != 0);
    }

    private void checkOnce() {
        if (isEmpty()) {
            return;
        }
        if (sender.isReady()) {
            start();
        } else if (!sender.isDelivering()) {
            sender.flow().whenOpen(this::check);
        }
    }

    private void start() {
        if (!started.compareAndSet(false, true)) {
            return; // the task checks again at its end
        }
        boolean submitted = false;
        try {
            executor.execute(this::runAll);
            submitted = true;
        } finally {
            if (!submitted) {
                started.set(false);
                runServers();
            }
        }
    }

    /** Runs the action of the server on this thread: a request would be paused for ever without it. */
    private void runServers() {
        Registration next = registeredByServer.getAndSet(null);
        if (next != null) {
            run(next);
        }
    }

    private void runAll() {
        for (int i = 0; i < MAX_ACTIONS_PER_TASK && sender.isReady(); i++) {
            Registration next = next();
            if (next == null) {
                break;
            }
            run(next);
        }
        started.set(false);
        check();
    }

    private void run(Registration next) {
        try {
            runSafely("action of backend failed", next.action);
        } finally {
            release(next);
        }
    }

    private void runSafely(String failure, Runnable code) {
        try {
            code.run();
        } catch (Throwable e) { // of the action of the backend, the flow of the client or the executor
            sender.log(failure, e);
        }
    }

    private void release(@Nullable Registration done) {
        if (done != null && done.retains) {
            sender.release();
        }
    }
}
