package dev.nereid.scheduler;

import dev.nereid.scheduler.rate.Ticket;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The turns of one instance under the rate limiter. Confined to the thread that runs the instance, but for
 * {@link #withdraw} and {@link #load}, which any thread may call; the grants come from any thread.
 *
 * <p>An instance asks for a turn when there is work and takes its batch only when it has the turn: so what waits stays
 * in the queue, where it may be withdrawn, overtaken or come to its time-out, until it can really be executed. An
 * instance that ends an execution while more work waits asks for its next turn before it gives this one back, as the
 * {@link Ticket} wants it; one that was granted a turn and finds nothing left gives it back unused.
 *
 * <p>Grant and withdrawal race for the step away from {@code ASKED}. A grant that comes too late is given back at once.
 * A withdrawal that comes before the question is seen by who asks, since that one looks for it afterwards.
 */
final class Turns {
    private enum State {
        NONE,
        ASKED,
        GRANTED,
        WITHDRAWN
    }

    private final Ticket ticket;
    private final AtomicReference<State> state = new AtomicReference<>(State.NONE);
    private final Semaphore ended = new Semaphore(0);
    private volatile boolean withdrawn;

    Turns(Ticket ticket) {
        this.ticket = ticket;
    }

    /** Says whether there are turns at all; if not, nothing else is to be called. */
    boolean areLimited() {
        return ticket.isLimited();
    }

    /** Tells how much the instance has had; less goes first. */
    long load() {
        return ticket.load();
    }

    /** Says whether a turn was asked for that has not begun. */
    boolean isAsked() {
        return state.get() != State.NONE;
    }

    /** Asks for a turn, unless that was done. */
    void ask() {
        if (state.compareAndSet(State.NONE, State.ASKED)) {
            ticket.stage(this::granted);
            if (withdrawn) {
                withdraw();
            }
        }
    }

    private void granted() {
        if (state.compareAndSet(State.ASKED, State.GRANTED)) {
            ended.release();
        } else {
            ticket.giveBackUnused();
        }
    }

    /**
     * Waits for the turn that was asked for, whatever interrupts.
     *
     * @return whether it has begun; if not, it was withdrawn, keeps nobody else waiting, and none is to be asked for
     *     any more
     */
    boolean await() {
        ended.acquireUninterruptibly();
        boolean begun = state.compareAndSet(State.GRANTED, State.NONE);
        if (!begun) {
            ticket.close();
        }
        return begun;
    }

    /** Begins the turn that was asked for, if it has come. */
    boolean tryBegin() {
        return ended.tryAcquire() && state.compareAndSet(State.GRANTED, State.NONE);
    }

    /** Has the instance wait for no turn any more; one that has begun goes on. */
    void withdraw() {
        withdrawn = true;
        if (state.compareAndSet(State.ASKED, State.WITHDRAWN)) {
            ended.release();
        }
    }

    /** Ends a turn in which nothing was executed. */
    void giveBack() {
        ticket.giveBackUnused();
    }

    /** Ends a turn by the end of its execution. Any thread may call this. */
    void end() {
        ticket.release();
    }

    /** Asks for no more turns. */
    void close() {
        ticket.close();
    }
}
