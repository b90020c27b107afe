package dev.nereid.scheduler.sequence;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.queue.Deadline;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.Sequence;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Links one waiting request into its sequence. The links are guarded by the lock of the sequences. */
final class SequenceEntry implements Rescheduler.Position, EqualInputs.Candidate {
    private final ScheduledRequest request;
    private final byte @Nullable [] content;
    private final Consumer<SequenceEntry> remover;
    private final Sequence position;

    /** The request behind this one in the sequence. */
    @Nullable
    SequenceEntry next;

    /** The sequence in which the request waits; {@code null} while it does not wait. */
    @Nullable
    LiveSequence sequence;

    /** The sequence to which the request belongs, also while it does not wait; {@code null} if it never waited. */
    @Nullable
    LiveSequence home;

    /** The reason of the end of the sequence before, when this request starts another sequence of the same id. */
    SequenceEndReason endBefore = SequenceEndReason.REPLACED;

    /** The deadline of its client; {@code null} for none. */
    @Nullable
    Deadline<Runnable> deadline;

    /** Creates an entry that does not wait, with the result of {@link EqualInputs#content} for the request. */
    SequenceEntry(
            ScheduledRequest request, Sequence position, byte @Nullable [] content, Consumer<SequenceEntry> remover) {
        this.request = request;
        this.position = position;
        this.content = content;
        this.remover = remover;
    }

    /** Creates an entry for the next execution of the same request, which does not wait yet. */
    SequenceEntry rescheduled() {
        SequenceEntry entry = new SequenceEntry(request, new Sequence(position.id(), false, false), content, remover);
        entry.home = home;
        return entry;
    }

    ScheduledRequest request() {
        return request;
    }

    boolean starts() {
        return position.start();
    }

    boolean ends() {
        return position.end();
    }

    Sequence.Id id() {
        return position.id();
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
