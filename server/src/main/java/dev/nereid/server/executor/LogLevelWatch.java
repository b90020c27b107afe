package dev.nereid.server.executor;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.spi.CancelHook;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Reports changes of a model's log level to the plugin that loaded the model. Guarded by a lock of this object; actions
 * of the plugin run outside of it.
 *
 * <p>The level is compared once a second while there are subscriptions, so that no part of the process has to announce a
 * change.
 */
public final class LogLevelWatch implements Watchdog.Watched {
    /** The most subscriptions of a model. */
    static final int MAX_SUBSCRIPTIONS = 100;

    private static final List<Level> LEVELS = List.of(Level.TRACE, Level.DEBUG, Level.INFO, Level.WARNING, Level.ERROR);

    private final Optional<Watchdog> watchdog;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<Subscription> subscriptions = new ArrayList<>();

    @GuardedBy("lock")
    private boolean closed;

    /** Creates a watch without subscriptions, which the watchdog checks once a second; never if it is empty. */
    LogLevelWatch(Optional<Watchdog> watchdog) {
        this.watchdog = requireNonNull(watchdog, "watchdog");
    }

    /**
     * Runs an action with the level on the calling thread, and again after each change.
     *
     * @param actions runs the action after a change
     * @return ends the subscription, which {@link #close} does at the latest
     * @throws IllegalStateException if there are too many subscriptions
     */
    public CancelHook subscribe(Logger log, Executor actions, Consumer<Level> action) {
        Subscription added = new Subscription(log, actions, requireNonNull(action, "action"));
        add(added);
        boolean ran = false;
        try {
            added.tell();
            ran = true;
        } finally {
            if (!ran) {
                added.close();
            }
        }
        return added;
    }

    private void add(Subscription added) {
        lock.lock();
        try {
            if (closed) {
                return;
            }
            if (subscriptions.size() >= MAX_SUBSCRIPTIONS) {
                throw new IllegalStateException("onLogLevel: " + MAX_SUBSCRIPTIONS
                        + " actions of the model (expected: fewer; close the hooks of actions no longer needed)");
            }
            if (subscriptions.isEmpty()) {
                watchdog.ifPresent(dog -> dog.add(this));
            }
            subscriptions.add(added);
        } finally {
            lock.unlock();
        }
    }

    private void remove(Subscription removed) {
        lock.lock();
        try {
            if (subscriptions.remove(removed) && subscriptions.isEmpty()) {
                watchdog.ifPresent(dog -> dog.remove(this));
            }
        } finally {
            lock.unlock();
        }
    }

    private List<Subscription> all() {
        lock.lock();
        try {
            return List.copyOf(subscriptions);
        } finally {
            lock.unlock();
        }
    }

    /** Reports a change since the last check to the plugin. */
    @Override
    public void check(long nowNanos) {
        all().forEach(Subscription::check);
    }

    /**
     * Ends all subscriptions, and does not wait for actions that run. Later ones run their action once.
     *
     * @return the places where the ended subscriptions began
     */
    public List<Throwable> close() {
        List<Subscription> ended;
        lock.lock();
        try {
            closed = true;
            ended = List.copyOf(subscriptions);
            subscriptions.clear();
            watchdog.ifPresent(dog -> dog.remove(this));
        } finally {
            lock.unlock();
        }
        ended.forEach(Subscription::end);
        return ended.stream().map(subscription -> subscription.place).toList();
    }

    private static Level least(Logger log) {
        for (Level level : LEVELS) {
            if (log.isLoggable(level)) {
                return level;
            }
        }
        return Level.OFF;
    }

    /** The place where a subscription began. */
    private static final class Place extends Throwable {
        private static final long serialVersionUID = 1;

        Place() {
            super("one was passed on");
        }
    }

    /**
     * The action of a plugin. Lock-free: the thread that begins a run changes the state, so that there is one at a time.
     */
    private final class Subscription implements CancelHook {
        private enum State {
            IDLE,
            WAITING,
            RUNNING,
            /** Running for the last time. */
            ENDING,
            ENDED
        }

        private final Logger log;
        private final Executor actions;
        private final Consumer<Level> action;
        private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);
        private final CountDownLatch ended = new CountDownLatch(1);
        private final Throwable place = new Place();

        /** The level of the last run. Written by the thread that runs the action. */
        private volatile Level told = Level.ALL;

        /** The thread that runs the action; {@code null} for none. */
        private volatile @Nullable Thread runner;

        Subscription(Logger log, Executor actions, Consumer<Level> action) {
            this.log = log;
            this.actions = actions;
            this.action = action;
        }

        void check() {
            if (least(log) == told || !state.compareAndSet(State.IDLE, State.WAITING)) {
                return;
            }
            try {
                actions.execute(this::tell);
            } catch (RejectedExecutionException _) { // too many tasks: the next check tries again
                state.compareAndSet(State.WAITING, State.IDLE);
            }
        }

        /** Runs the action, unless the subscription has ended. */
        void tell() {
            if (!state.compareAndSet(State.WAITING, State.RUNNING)) {
                return;
            }
            runner = Thread.currentThread();
            try {
                Level level = least(log);
                told = level;
                action.accept(level);
            } finally {
                runner = null;
                if (!state.compareAndSet(State.RUNNING, State.IDLE)) {
                    state.set(State.ENDED);
                    ended.countDown();
                }
            }
        }

        /** Ends the subscription; {@code false} if the action runs at the moment. */
        boolean end() {
            State now = state.updateAndGet(before -> switch (before) {
                case IDLE, WAITING, ENDED -> State.ENDED;
                case RUNNING, ENDING -> State.ENDING;
            });
            return now == State.ENDED;
        }

        @Override
        public void close() {
            remove(this);
            if (end() || Thread.currentThread().equals(runner)) {
                return;
            }
            boolean interrupted = false;
            while (ended.getCount() > 0) {
                try {
                    ended.await();
                } catch (InterruptedException _) { // the caller frees what the action uses
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
