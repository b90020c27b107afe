package dev.nereid.scheduler;

import dev.nereid.scheduler.rate.Ticket;
import java.util.concurrent.Semaphore;

/**
 * The turns of one instance under the rate limiter. Confined to the thread that runs the instance; the grants come from any
 * thread.
 *
 * <p>An instance asks for a turn when there is work and takes its batch only when it has the turn: so what waits stays in
 * the queue, where it may be withdrawn, overtaken or come to its time-out, until it can really be executed. An instance that
 * ends an execution while more work waits asks for its next turn before it gives this one back, as the {@link Ticket} wants
 * it; one that was granted a turn and finds nothing left gives it back unused.
 */
final class Turns {
    private final Ticket ticket;
    private final Semaphore grants = new Semaphore(0);
    private boolean asked;

    Turns(Ticket ticket) {
        this.ticket = ticket;
    }

    /** Says whether there are turns at all; if not, nothing else is to be called. */
    boolean areLimited() {
        return ticket.isLimited();
    }

    /** Tells how much the instance has had; less goes first. Any thread may ask. */
    long load() {
        return ticket.load();
    }

    /** Says whether a turn was asked for that has not begun. */
    boolean isAsked() {
        return asked;
    }

    /** Asks for a turn, unless that was done. */
    void ask() {
        if (!asked) {
            asked = true;
            ticket.stage(grants::release);
        }
    }

    /** Waits for the turn that was asked for, whatever interrupts. */
    void await() {
        grants.acquireUninterruptibly();
        asked = false;
    }

    /** Begins the turn that was asked for, if it has come. */
    boolean tryBegin() {
        if (!grants.tryAcquire()) {
            return false;
        }
        asked = false;
        return true;
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
