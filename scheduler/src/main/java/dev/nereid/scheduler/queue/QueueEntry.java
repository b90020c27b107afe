package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Links one request into its queue. The links are guarded by the lock of the queue.
 *
 * <p>A request has one entry for each offer to a queue, and refers to it as a {@link Rescheduler.Position} only.
 */
final class QueueEntry implements Rescheduler.Position, EqualInputs.Candidate {
    private final ScheduledRequest request;
    private final byte @Nullable [] content;
    private final Consumer<QueueEntry> remover;

    /** The neighbors on the priority level. */
    @Nullable
    QueueEntry previous;

    @Nullable
    QueueEntry next;

    /** The priority level on which the request waits. It is {@code null} while the request is not in the queue. */
    @Nullable
    PriorityLevel level;

    /** The deadline or timeout of the request, whichever is earlier; {@code null} for none. */
    @Nullable
    Deadline<QueueEntry> deadline;

    /** Creates an entry, not in the queue, with the result of {@link EqualInputs#content}; the remover removes it. */
    QueueEntry(ScheduledRequest request, byte @Nullable [] content, Consumer<QueueEntry> remover) {
        this.request = request;
        this.content = content;
        this.remover = remover;
    }

    ScheduledRequest request() {
        return request;
    }

    @Override
    public CheckedRequest checked() {
        return request.checked();
    }

    @Override
    public byte @Nullable [] content() {
        return content;
    }

    @Override
    public void leave() {
        remover.accept(this);
    }
}
