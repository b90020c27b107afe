package dev.nereid.scheduler.oracle;

import dev.nereid.scheduler.request.IndependentCalls;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ResponseChannel;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;

/**
 * Queues rescheduled requests of iterative sequences. Safe for use by any thread.
 *
 * <p>A request keeps its slot, and goes before all others of its sequence. While its client does not read, it stays
 * there and is not executed; the other sequences go on.
 */
final class SequenceRescheduler implements Rescheduler {
    private final SequenceTable table;
    private final SequenceLock lock;

    SequenceRescheduler(SequenceTable table, SequenceLock lock) {
        this.table = table;
        this.lock = lock;
    }

    @Override
    public Rescheduler.Position newPosition(ScheduledRequest request) {
        return entry(request).rescheduled();
    }

    @Override
    public void reschedule(int ended, List<ScheduledRequest> rescheduled) {
        IndependentCalls.forEach(rescheduled, this::reschedule);
    }

    private void reschedule(ScheduledRequest request) {
        try {
            SequenceEntry entry = entry(request);
            ResponseChannel channel = request.delivery().channel();
            boolean paused = channel != null && !channel.isReady();
            lock.lock();
            try {
                table.addAgain(entry, paused);
            } finally {
                lock.unlock();
            }
            request.checkQueued();
            if (channel != null && paused) {
                channel.alsoWhenReady(() -> resume(entry));
            }
        } catch (RuntimeException e) { // of the flow of its client: the others are not affected
            request.failUnqueued(e);
        }
    }

    private void resume(SequenceEntry entry) {
        lock.lock();
        try {
            table.resume(entry);
        } finally {
            lock.unlock();
        }
    }

    private static SequenceEntry entry(ScheduledRequest request) {
        if (request.position() instanceof SequenceEntry entry) {
            return entry;
        }
        throw new IllegalStateException("position: " + request.position() + " (expected: of a sequence)");
    }
}
