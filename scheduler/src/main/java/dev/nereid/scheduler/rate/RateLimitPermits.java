package dev.nereid.scheduler.rate;

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Requests and awaits the rate limiter permits of one instance. Confined to the thread that runs the instance, but for
 * {@link #cancel} and {@link #load}, which any thread may call; the grants come from any thread.
 *
 * <p>An instance asks for a turn when there is work and takes its batch only when it has the turn: so what waits stays
 * in the queue, where it may be withdrawn, overtaken or come to its time-out, until it can really be executed. An
 * instance that ends an execution while more work waits asks for its next turn before it gives this one back, as the
 * {@link RateLimitRegistration} wants it; one that was granted a turn and finds nothing left gives it back unused.
 *
 * <p>Grant and withdrawal race for the step away from {@code ASKED}. A grant that comes too late is given back at once.
 * A withdrawal that comes before the question is seen by who asks, since that one looks for it afterwards.
 */
public final class RateLimitPermits {
    private enum State {
        NONE,
        REQUESTED,
        GRANTED,
        CANCELLED
    }

    private final RateLimitRegistration registration;
    private final AtomicReference<State> state = new AtomicReference<>(State.NONE);
    private final Semaphore ended = new Semaphore(0);
    private volatile boolean cancelled;

    public RateLimitPermits(RateLimitRegistration ticket) {
        this.registration = ticket;
    }

    /** Says whether there are turns at all; if not, nothing else is to be called. */
    public boolean areLimited() {
        return registration.isLimited();
    }

    /** Tells how much the instance has had; less goes first. */
    public long load() {
        return registration.load();
    }

    /** Says whether a turn was asked for that has not begun. */
    public boolean isRequested() {
        return state.get() != State.NONE;
    }

    /** Asks for a turn, unless that was done. */
    public void request() {
        if (state.compareAndSet(State.NONE, State.REQUESTED)) {
            registration.stage(this::granted);
            if (cancelled) {
                cancel();
            }
        }
    }

    private void granted() {
        if (state.compareAndSet(State.REQUESTED, State.GRANTED)) {
            ended.release();
        } else {
            registration.releaseUnused();
        }
    }

    /**
     * Waits for the turn that was asked for, whatever interrupts.
     *
     * @return whether it has begun; if not, it was withdrawn, keeps nobody else waiting, and none is to be asked for
     *     any more
     */
    public boolean await() {
        ended.acquireUninterruptibly();
        boolean begun = state.compareAndSet(State.GRANTED, State.NONE);
        if (!begun) {
            registration.close();
        }
        return begun;
    }

    /** Begins the turn that was asked for, if it has come. */
    public boolean tryBegin() {
        return ended.tryAcquire() && state.compareAndSet(State.GRANTED, State.NONE);
    }

    /** Has the instance wait for no turn any more; one that has begun goes on. */
    public void cancel() {
        cancelled = true;
        if (state.compareAndSet(State.REQUESTED, State.CANCELLED)) {
            ended.release();
        }
    }

    /** Ends a turn in which nothing was executed. */
    public void releaseUnused() {
        registration.releaseUnused();
    }

    /** Ends a turn by the end of its execution. Any thread may call this. */
    public void release() {
        registration.release();
    }

    /** Asks for no more turns. */
    public void close() {
        registration.close();
    }
}
