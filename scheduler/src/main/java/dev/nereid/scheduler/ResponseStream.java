package dev.nereid.scheduler;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseReport;
import dev.nereid.spi.ResponseSender;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The responses of one request to a decoupled model, in the order in which they are sent. Guarded by its own lock; the
 * observer is called outside of it.
 *
 * <p>Any number of threads may send, but the observer hears one call at a time: whoever adds an answer while nobody
 * tells any becomes the teller, and tells until none is left; the others only add. The request itself decides which end
 * counts; nothing is told after that one, and nothing is sent once the request was withdrawn.
 *
 * <p>The sender uses the request and its inputs until it is ended, whatever became of the request meanwhile. The last
 * use ends after the last answer was told.
 */
final class ResponseStream implements ResponseSender {
    private final ScheduledRequest request;
    private final @Nullable GatheredInputs gathered;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Queue<Answer> answers = new ArrayDeque<>(2);

    /** Whether some thread is about to tell answers. */
    @GuardedBy("lock")
    private boolean telling;

    /** Whether the last answer was added. */
    @GuardedBy("lock")
    private boolean answered;

    /** Whether the backend ended the sender. */
    @GuardedBy("lock")
    private boolean ended;

    /** How many responses the backend reported. */
    @GuardedBy("lock")
    private int reports;

    /** Becomes a user of the request until the sender is ended. */
    ResponseStream(ScheduledRequest request, @Nullable GatheredInputs gathered) {
        this.request = request;
        this.gathered = gathered;
        request.retain();
    }

    @Override
    public InferenceResponse newResponse() {
        return new ResponseDraft(request, gathered, null);
    }

    @Override
    public void send(InferenceResponse response) {
        ResponseDraft draft = own(response);
        if (!use()) {
            draft.discard();
            return;
        }
        if (request.isAnswered() || request.isCancelled()) {
            draft.discard();
        } else {
            try {
                add(draft.finish(false), false);
            } catch (BackendException e) {
                request.fail(e);
            }
        }
        request.release();
    }

    @Override
    public void complete(InferenceResponse last) {
        ResponseDraft draft = own(last);
        if (end()) {
            try {
                request.answer(draft.finish(true));
            } catch (BackendException e) {
                request.fail(e);
            }
            request.release();
        } else {
            draft.discard();
        }
    }

    @Override
    public void complete() {
        if (end()) {
            request.answer(Answer.END);
            request.release();
        }
    }

    @Override
    public void fail(BackendException error) {
        if (end()) {
            request.fail(error);
            request.release();
        }
    }

    @Override
    public boolean isCancelled() {
        return request.isCancelled();
    }

    @Override
    public void report(ResponseReport report) throws BackendException {
        ModelMeter.check(report);
        request.model().meter().responded(nextReport(), report);
    }

    private int nextReport() {
        lock.lock();
        try {
            return reports++;
        } finally {
            lock.unlock();
        }
    }

    /** Says whether the backend ended the sender. */
    boolean isEnded() {
        lock.lock();
        try {
            return ended;
        } finally {
            lock.unlock();
        }
    }

    /** Adds the last answer; called once, by the request. */
    void tellLast(Answer last) {
        add(last, true);
    }

    private ResponseDraft own(InferenceResponse response) {
        if (response instanceof ResponseDraft draft && draft.isOpenFor(request)) {
            return draft;
        }
        throw new IllegalArgumentException(
                "response: " + response + " (expected: made by this sender, neither sent nor discarded)");
    }

    /** Adds a user of the request for the time of a call, unless the sender was ended. */
    private boolean use() {
        lock.lock();
        try {
            if (!ended) {
                request.retain();
            }
            return !ended;
        } finally {
            lock.unlock();
        }
    }

    /** Ends the sender, if it was not; whoever does it takes over its use of the request. */
    private boolean end() {
        lock.lock();
        try {
            boolean first = !ended;
            ended = true;
            return first;
        } finally {
            lock.unlock();
        }
    }

    private void add(Answer answer, boolean last) {
        boolean late;
        lock.lock();
        try {
            late = answered;
            if (!late) {
                answered = last;
                answers.add(answer);
                if (telling) {
                    return;
                }
                telling = true;
            }
        } finally {
            lock.unlock();
        }
        if (late) {
            answer.discard();
        } else {
            tellAll();
        }
    }

    /** Tells answers until none is left; a user of the request meanwhile, as the one who added an answer was. */
    private void tellAll() {
        request.retain();
        for (Answer next = next(); next != null; next = next()) {
            request.answers().tell(next);
        }
        request.release();
    }

    private @Nullable Answer next() {
        lock.lock();
        try {
            Answer answer = answers.poll();
            telling = answer != null;
            return answer;
        } finally {
            lock.unlock();
        }
    }
}
