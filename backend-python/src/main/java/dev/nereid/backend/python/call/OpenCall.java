package dev.nereid.backend.python.call;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One call in progress: passes the responses of the other model on as frames. Safe for use by any thread; never blocks.
 *
 * <p>Frames are sent in order by one thread at a time, without the lock: the thread that adds a frame sends all waiting
 * frames, unless another thread does. A response beyond the window waits as it is, within a bound, until the process
 * allows more. The first final frame ends the call; later responses are closed.
 */
final class OpenCall implements ModelResponseObserver {
    /** The bound on responses that wait, in bytes. */
    static final long MAX_WAITING_BYTES = 64L << 20;

    /** The bytes that a waiting response takes beside its outputs. */
    private static final long RESPONSE_BYTES = 1024;

    /**
     * Content of one frame.
     *
     * @param response the response, owned by this; {@code null} for an error, and for the end alone
     * @param error the error; {@code null} for none
     * @param isFinal whether the frame ends the call
     * @param bytes the size while it waits
     */
    private record Outgoing(
            @Nullable ModelResponse response,
            @Nullable BackendException error,
            boolean isRefusal,
            boolean isFinal,
            long bytes) {
        boolean takesCredit() {
            return response != null || !isFinal;
        }

        void discard() {
            if (response != null) {
                response.close();
            }
        }
    }

    /**
     * Functions for a call from the calls of its process.
     *
     * @param refusal returns the text of a refusal for the model and its version
     * @param ended is run once or more when the call has ended
     * @param log receives errors that are defects
     */
    record Scope(
            ResponseFrames frames,
            BiFunction<CallTarget, BackendException, String> refusal,
            Consumer<OpenCall> ended,
            System.Logger log) {}

    /** The model that is called, with its version or -1 for any. */
    record CallTarget(String model, long version) {}

    private final long id;
    private final CallTarget target;
    private final boolean isStream;
    private final long inputBytes;
    private final ModelRequest request;
    private final Scope scope;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final ArrayDeque<Outgoing> waiting = new ArrayDeque<>(2);

    @GuardedBy("lock")
    private long waitingBytes;

    /** The responses that may be sent now. */
    @GuardedBy("lock")
    private long credits;

    /** {@code true} while a thread sends waiting frames. */
    @GuardedBy("lock")
    private boolean sending;

    /** {@code true} once the final frame waits or was sent. */
    @GuardedBy("lock")
    private boolean isOver;

    /** {@code true} once the process takes no more frames of this call. */
    @GuardedBy("lock")
    private boolean dropped;

    @GuardedBy("lock")
    private boolean cancelled;

    /** {@code true} once the server has ended the request. */
    @GuardedBy("lock")
    private boolean completed;

    /** Resumes the other model; {@code null} if it does not wait. */
    @GuardedBy("lock")
    private @Nullable Runnable readyAction;

    /** The response of a call that takes one, until it is the only one. Confined to the calls of the observer. */
    private @Nullable ModelResponse first;

    /** {@code true} once a call that takes one response got several. Confined as {@code first}. */
    private boolean isSeveral;

    OpenCall(CallFrame frame, ModelRequest request, long inputBytes, Scope scope) {
        id = frame.id();
        target = new CallTarget(frame.model(), frame.version());
        isStream = frame.isStream();
        credits = isStream ? frame.window() : 1;
        this.request = request;
        this.inputBytes = inputBytes;
        this.scope = scope;
    }

    long id() {
        return id;
    }

    long inputBytes() {
        return inputBytes;
    }

    @Override
    public void onResponse(ModelResponse response) {
        boolean isFinal = response.isFinal();
        if (isStream || (isFinal && first == null && !isSeveral)) {
            add(response, isFinal);
        } else if (first == null && !isSeveral) {
            first = response;
        } else {
            response.close();
            several();
        }
    }

    @Override
    public void onFailedResponse(BackendException error) {
        if (isStream) {
            add(new Outgoing(null, error, false, false, RESPONSE_BYTES));
        } else {
            several();
        }
    }

    private void several() {
        ModelResponse received = first;
        first = null;
        if (received != null) {
            received.close();
        }
        if (!isSeveral) {
            isSeveral = true;
            request.cancel();
        }
    }

    @Override
    public void onCompleted() {
        ModelResponse received = first;
        first = null;
        if (received != null) {
            add(received, true);
        } else if (isStream) {
            add(new Outgoing(null, null, false, true, 0));
        } else {
            add(new Outgoing(null, decoupled(), true, true, 0));
        }
        completed();
    }

    @Override
    public void onError(BackendException error) {
        end(error, false);
    }

    @Override
    public void onRefused(BackendException error) {
        end(error, true);
    }

    private void end(BackendException error, boolean isRefusal) {
        ModelResponse received = first;
        first = null;
        if (received != null) {
            received.close();
        }
        add(isSeveral ? new Outgoing(null, decoupled(), true, true, 0) : new Outgoing(null, error, isRefusal, true, 0));
        completed();
    }

    private BackendException decoupled() {
        return new BackendException(ErrorCode.INTERNAL, CallErrors.decoupled(target.model()));
    }

    void send() {
        request.send(this);
    }

    /** Ends a call after its request could not be sent. */
    void refuse(BackendException error) {
        onRefused(error);
    }

    private void completed() {
        boolean isEnd;
        lock.lock();
        try {
            completed = true;
            isEnd = dropped;
        } finally {
            lock.unlock();
        }
        if (isEnd) {
            scope.ended().accept(this);
        }
    }

    /** Sends a response, or has it wait. */
    private void add(ModelResponse response, boolean isFinal) {
        boolean isNow;
        lock.lock();
        try {
            isNow = !dropped && !isOver && !sending && waiting.isEmpty() && credits > 0;
            if (isNow) {
                credits--;
                sending = true;
                isOver = isFinal;
            }
        } finally {
            lock.unlock();
        }
        if (isNow) {
            send(new Outgoing(response, null, false, isFinal, 0));
            sendWaiting();
        } else {
            add(new Outgoing(response, null, false, isFinal, RESPONSE_BYTES + sizeOf(response)));
        }
    }

    private static long sizeOf(ModelResponse response) {
        long bytes = 0;
        for (String name : response.outputs()) {
            bytes += response.requireOutput(name).byteSize();
        }
        return bytes;
    }

    private void add(Outgoing added) {
        boolean isDropped;
        boolean isFirst = false;
        List<Outgoing> discarded = List.of();
        lock.lock();
        try {
            isDropped = dropped || isOver;
            if (!isDropped) {
                waiting.add(added);
                waitingBytes += added.bytes();
                isOver = added.isFinal();
                if (waitingBytes > MAX_WAITING_BYTES && credits == 0) {
                    discarded = takeWaiting();
                    waiting.add(new Outgoing(null, CallErrors.tooManyWaiting(discarded.size()), false, true, 0));
                    isOver = true;
                }
                isFirst = !sending;
                sending = true;
            }
        } finally {
            lock.unlock();
        }
        if (isDropped) {
            added.discard();
        } else if (isFirst) {
            sendWaiting();
        }
        if (!discarded.isEmpty()) {
            discarded.forEach(Outgoing::discard);
            request.cancel();
        }
    }

    @GuardedBy("lock")
    private List<Outgoing> takeWaiting() {
        List<Outgoing> taken = new ArrayList<>(waiting);
        waiting.clear();
        waitingBytes = 0;
        return taken;
    }

    /** Sends what waits and may be sent. The calling thread is the one that sends. */
    private void sendWaiting() {
        Outgoing next = next();
        while (next != null) {
            send(next);
            next = next();
        }
    }

    private @Nullable Outgoing next() {
        lock.lock();
        try {
            Outgoing next = waiting.peek();
            if (next == null || (next.takesCredit() && credits == 0)) {
                sending = false;
                return null;
            }
            waiting.remove();
            waitingBytes -= next.bytes();
            if (next.takesCredit()) {
                credits--;
            }
            return next;
        } finally {
            lock.unlock();
        }
    }

    private void send(Outgoing outgoing) {
        ResponseFrames frames = scope.frames();
        ModelResponse response = outgoing.response();
        BackendException error = outgoing.error();
        if (response != null) {
            try (response) {
                frames.response(id, response, outgoing.isFinal());
            } catch (RuntimeException e) {
                notWritten(e);
                return;
            }
        } else if (error == null) {
            frames.end(id);
        } else if (outgoing.isRefusal()) {
            frames.refused(id, scope.refusal().apply(target, error));
        } else {
            frames.failed(id, error, outgoing.isFinal());
        }
        if (outgoing.isFinal()) {
            scope.ended().accept(this);
        }
    }

    /** Ends the call after a response that cannot be written. */
    private void notWritten(RuntimeException e) {
        if (!(e instanceof BackendException)) {
            scope.log().log(
                    System.Logger.Level.WARNING, "response of model '" + target.model() + "' cannot be sent", e);
        }
        List<Outgoing> discarded;
        lock.lock();
        try {
            isOver = true;
            discarded = takeWaiting();
        } finally {
            lock.unlock();
        }
        discarded.forEach(Outgoing::discard);
        scope.frames()
                .failed(
                        id,
                        e instanceof BackendException known
                                ? known
                                : new BackendException(ErrorCode.INTERNAL, ResponseFrames.text(e), e),
                        true);
        scope.ended().accept(this);
        request.cancel();
    }

    @Override
    public boolean isReady() {
        lock.lock();
        try {
            return isReadyNow();
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean isReadyNow() {
        return dropped || cancelled || isOver || credits > waiting.size();
    }

    @Override
    public void onReady(Runnable action) {
        boolean isNow;
        lock.lock();
        try {
            isNow = isReadyNow();
            readyAction = isNow ? null : action;
        } finally {
            lock.unlock();
        }
        if (isNow) {
            action.run();
        }
    }

    void credit(int more) {
        boolean isFirst;
        Runnable action = null;
        lock.lock();
        try {
            credits += more;
            isFirst = !sending && !waiting.isEmpty();
            sending |= isFirst;
        } finally {
            lock.unlock();
        }
        if (isFirst) {
            sendWaiting();
        }
        lock.lock();
        try {
            if (isReadyNow()) {
                action = readyAction;
                readyAction = null;
            }
        } finally {
            lock.unlock();
        }
        run(action);
    }

    /** Cancels the request. Responses that were sent before, and the end, still come. */
    void cancel() {
        Runnable action;
        lock.lock();
        try {
            cancelled = true;
            action = readyAction;
            readyAction = null;
        } finally {
            lock.unlock();
        }
        request.cancel();
        run(action);
    }

    /** Closes the responses that wait, and later ones. The other model goes on to its end. */
    void drop() {
        Runnable action;
        List<Outgoing> discarded;
        boolean isEnd;
        lock.lock();
        try {
            dropped = true;
            discarded = takeWaiting();
            isEnd = completed || isOver;
            action = readyAction;
            readyAction = null;
        } finally {
            lock.unlock();
        }
        discarded.forEach(Outgoing::discard);
        if (isEnd) {
            scope.ended().accept(this);
        }
        run(action);
    }

    private static void run(@Nullable Runnable action) {
        if (action != null) {
            action.run();
        }
    }
}
