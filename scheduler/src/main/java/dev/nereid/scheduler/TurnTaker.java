package dev.nereid.scheduler;

import org.jspecify.annotations.Nullable;

/**
 * Takes the turns of a worker under the rate limiter: one for each batch, of the instance that goes next. Confined to
 * the thread that runs the instances.
 */
final class TurnTaker {
    private final DeviceSeats instances;
    private final BatchSource source;

    /** For what the turn was used, until the turn is ended. */
    private @Nullable ExecutionBatch used;

    /**
     * Begins without a turn.
     *
     * @param instances whose turns are taken
     * @param source where there is work, or not
     */
    TurnTaker(DeviceSeats instances, BatchSource source) {
        this.instances = instances;
        this.source = source;
    }

    /**
     * Waits for work, and then for the turn to do it.
     *
     * @return {@code false} if there is nothing left to do, ever
     */
    boolean await(Seat seat) {
        Turns turns = instances.turns();
        if (!turns.isAsked() && !source.awaitWork(seat)) {
            return false;
        }
        turns.ask();
        return turns.await();
    }

    /** Asks for a turn if there is work, and begins it if it has come. */
    boolean tryBegin() {
        Turns turns = instances.turns();
        if (!turns.isAsked() && !source.hasWork()) {
            return false;
        }
        turns.ask();
        return turns.tryBegin();
    }

    /** Takes note that the turn is used. */
    void use(ExecutionBatch batch) {
        used = batch;
    }

    /** Says whether the turn was used, and there is work for another one. */
    boolean isWorthAnother() {
        return used != null && source.hasWork();
    }

    /**
     * Ends a turn, or leaves that to the end of the execution for which it was used.
     *
     * @param turns of whom the turn was
     * @param more whether to ask for another one before
     */
    void end(Turns turns, boolean more) {
        ExecutionBatch batch = used;
        used = null;
        if (more) {
            instances.turns().ask();
        }
        if (batch == null) {
            turns.giveBack();
        } else {
            batch.whenEnded(turns::end);
        }
    }
}
