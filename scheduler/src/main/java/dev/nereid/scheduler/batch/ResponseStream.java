package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.ResponseChannel;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseReport;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Queue;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Sends the responses of one request to a decoupled model, in order. Guarded by its own lock, under which the clock and
 * the meter are called; the observer is called outside of it.
 *
 * <p>Any number of threads may send, but the observer hears one call at a time: whoever adds an answer while nobody
 * tells any becomes the teller, and tells until none is left; the others only add. The request itself decides which end
 * counts; nothing is told after that one, and nothing is sent once the request was withdrawn.
 *
 * <p>The sender uses the request and its inputs until it is ended, whatever became of the request meanwhile. The last
 * use ends after the last answer was told.
 */
public final class ResponseStream implements ResponseChannel {
    private final ExecutionScope scope;
    private final ScheduledRequest request;
    private final @Nullable GatheredInputs gathered;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Queue<ResponseEvent> events = new ArrayDeque<>(2);

    /** Whether some thread is about to tell answers. */
    @GuardedBy("lock")
    private boolean sending;

    /** Whether the last answer was added. */
    @GuardedBy("lock")
    private boolean completed;

    /** Whether the backend ended the sender. */
    @GuardedBy("lock")
    private boolean ended;

    /** The place of the next response that is added, failed or not; those beyond the last place have that. */
    @GuardedBy("lock")
    private int sent;

    /** The places of the failed responses that were added; {@code null} as long as there are none. */
    @GuardedBy("lock")
    private @Nullable BitSet failed;

    /** The place of the next response that the backend reports. */
    @GuardedBy("lock")
    private int reports;

    /** When the last failed response was added, or the sender was taken. */
    @GuardedBy("lock")
    private long lastNanos;

    /** Becomes a user of the request until the sender is ended. */
    public ResponseStream(ExecutionScope scope, ScheduledRequest request, @Nullable GatheredInputs gathered) {
        this.scope = scope;
        this.request = request;
        this.gathered = gathered;
        this.lastNanos = request.model().nanoTime().getAsLong();
        request.retain();
    }

    @Override
    public InferenceResponse newResponse() {
        return new ResponseBuilder(scope, request, gathered, null);
    }

    @Override
    public void send(InferenceResponse response) {
        ResponseBuilder draft = own(response);
        if (!tryRetain()) {
            draft.discard();
            return;
        }
        try {
            if (isUnwanted()) {
                draft.discard();
            } else {
                add(draft.finish(false), false);
            }
        } catch (BackendException e) {
            request.fail(e);
        } finally {
            request.release();
        }
    }

    @Override
    public void sendError(BackendException error) {
        ResponseEvent answer = new ResponseEvent.FailedResponse(SchedulerErrors.of(requireNonNull(error, "error")));
        if (!tryRetain()) {
            return;
        }
        try {
            if (!isUnwanted()) {
                add(answer, false);
            }
        } finally {
            request.release();
        }
    }

    /** Says whether nobody is told any more responses. */
    private boolean isUnwanted() {
        return request.isCompleted() || request.isCancelled();
    }

    @Override
    public void complete(InferenceResponse last) {
        ResponseBuilder draft = own(last);
        if (!end()) {
            draft.discard();
            return;
        }
        try {
            request.complete(draft.finish(true));
        } catch (BackendException e) {
            request.fail(e);
        } finally {
            request.release();
        }
    }

    @Override
    public void complete() {
        endWith(ResponseEvent.END);
    }

    @Override
    public void fail(BackendException error) {
        endWith(ResponseEvent.Failure.of(requireNonNull(error, "error"), FailureReason.BACKEND));
    }

    private void endWith(ResponseEvent last) {
        if (end()) {
            try {
                request.complete(last);
            } finally {
                request.release();
            }
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
            if (failed != null) {
                reports = failed.nextClearBit(reports);
            }
            return reports++;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean isEnded() {
        lock.lock();
        try {
            return ended;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void sendTerminal(ResponseEvent last) {
        add(last, true);
    }

    private ResponseBuilder own(InferenceResponse response) {
        if (response instanceof ResponseBuilder draft && draft.isOpenFor(request)) {
            return draft;
        }
        throw new IllegalArgumentException(
                "response: " + response + " (expected: made by this sender, neither sent nor discarded)");
    }

    /** Adds a user of the request for the time in which a response is sent. Returns false if the sender was ended. */
    private boolean tryRetain() {
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

    /** Adds an answer, and tells it unless somebody tells others; after the last answer, it is discarded. */
    private void add(ResponseEvent answer, boolean last) {
        boolean added = false;
        boolean tells = false;
        lock.lock();
        try {
            if (!completed) {
                takePlace(answer);
                events.add(answer);
                added = true;
                completed = last;
                tells = !sending;
                sending = true;
            }
        } finally {
            lock.unlock();
            if (!added) {
                answer.discard();
            }
        }
        if (tells) {
            sendAll();
        }
    }

    /** Gives an answer its place in the statistics of responses, where a failed one is counted before it is told. */
    @GuardedBy("lock")
    private void takePlace(ResponseEvent answer) {
        int place = sent;
        if (answer instanceof ResponseEvent.FailedResponse failure) {
            long now = request.model().nanoTime().getAsLong();
            ErrorCode code = failure.error().code();
            request.model().meter().responded(place, ResponseReport.failed(lastNanos, now, code));
            lastNanos = now;
            if (failed == null) {
                failed = new BitSet();
            }
            failed.set(place);
        }
        if (place < ModelMeter.MAX_PLACES) {
            sent = place + 1;
        }
    }

    /** Tells answers until none is left; a user of the request meanwhile, as the one who added an answer was. */
    private void sendAll() {
        request.retain();
        for (ResponseEvent next = next(); next != null; next = next()) {
            request.delivery().send(next);
        }
        request.release();
    }

    private @Nullable ResponseEvent next() {
        lock.lock();
        try {
            ResponseEvent answer = events.poll();
            sending = answer != null;
            return answer;
        } finally {
            lock.unlock();
        }
    }
}
