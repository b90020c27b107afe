package dev.nereid.scheduler.rate;

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Requests and awaits the rate limiter permits of one instance. Confined to the thread that runs the instance, except
 * for {@link #cancel} and {@link #load}, which any thread may call; any thread may grant a permit.
 *
 * <p>An instance requests a permit when there is work and takes its batch only when it holds the permit. So requests
 * stay in the queue, where they may be cancelled, overtaken or expire, until they can be executed. An instance that
 * ends an execution while more requests wait requests its next permit before it releases the current one, as
 * {@link RateLimitRegistration#stage} describes. An instance that is granted a permit and finds no batch releases it
 * unused.
 *
 * <p>Grant and cancellation race for the step out of {@code REQUESTED}. A grant that loses is released at once. A
 * cancellation before a request is seen by {@link #request}, which checks for it afterwards.
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

    public RateLimitPermits(RateLimitRegistration registration) {
        this.registration = registration;
    }

    /** Returns whether permits are needed; if not, no other method has to be called. */
    public boolean areLimited() {
        return registration.isLimited();
    }

    /** Returns the load of the instance; lower goes first. */
    public long load() {
        return registration.load();
    }

    /** Returns whether a permit is requested and not yet used. */
    public boolean isRequested() {
        return state.get() != State.NONE;
    }

    /** Requests a permit, unless one is requested. */
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
     * Waits uninterruptibly for the requested permit.
     *
     * @return whether it is granted; if not, it was cancelled and the registration is closed, so that no further permit
     *     may be requested
     */
    public boolean await() {
        ended.acquireUninterruptibly();
        boolean granted = state.compareAndSet(State.GRANTED, State.NONE);
        if (!granted) {
            registration.close();
        }
        return granted;
    }

    /** Takes the requested permit, if it is granted; returns whether it is. */
    public boolean tryBegin() {
        return ended.tryAcquire() && state.compareAndSet(State.GRANTED, State.NONE);
    }

    /** Ends all waits for a permit; a permit in use stays valid. */
    public void cancel() {
        cancelled = true;
        if (state.compareAndSet(State.REQUESTED, State.CANCELLED)) {
            ended.release();
        }
    }

    /** Releases a permit without an execution. */
    public void releaseUnused() {
        registration.releaseUnused();
    }

    /** Releases a permit at the end of its execution. Called by any thread. */
    public void release() {
        registration.release();
    }

    /** Closes the registration: no more permits are requested. */
    public void close() {
        registration.close();
    }
}
