package dev.nereid.backend.python.execute;

import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseSender;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A request that a process has, from EXECUTE to its end, which comes once. It is changed by the thread that receives the frames
 * of the process; cancellation and the flow of responses come from any thread.
 */
final class OpenRequest {
    /** How many responses the process may send at first before the client has read some. */
    static final int FIRST_WINDOW = 8;

    /** The number for small responses; for large ones it is less, so that a slow client has little in memory. */
    private static final int LARGEST_WINDOW = 64;

    private static final int SMALLEST_WINDOW = 4;

    /** The size in bytes that the responses of a window may have together, if that is larger than the smallest window. */
    private static final long WINDOW_BYTES = 16L << 20;

    private final long handle;
    private final InferenceRequest request;
    private final FrameSink sink;
    private final AtomicInteger owed = new AtomicInteger();

    /** The number of responses that the process may send, with the ones that are owed to it. For the thread that receives. */
    private int window = FIRST_WINDOW;

    private @Nullable ResponseSender sender;
    private @Nullable CancelHook hook;
    private volatile boolean sent;
    private volatile boolean cancelled;
    private boolean rescheduled;
    private final AtomicBoolean ended = new AtomicBoolean();

    OpenRequest(long handle, InferenceRequest request, FrameSink sink) {
        this.handle = handle;
        this.request = request;
        this.sink = sink;
    }

    /** Passes a cancellation on to the process, when that has the request. */
    void watchCancellation() {
        hook = request.onCancel(() -> {
            cancelled = true;
            if (sent) {
                send(FrameType.CANCEL, 0);
            }
        });
    }

    /** Says that EXECUTE was sent. */
    void onSent() {
        sent = true;
        if (cancelled) {
            send(FrameType.CANCEL, 0);
        }
    }

    long handle() {
        return handle;
    }

    boolean isEnded() {
        return ended.get();
    }

    /** Returns whether responses go through a sender, so that the end of the execution does not end the request. */
    boolean isDetached() {
        return sender != null;
    }

    /** Detaches the request from its execution, on the thread of that. */
    void detach() {
        if (sender == null) {
            sender = request.sender();
        }
    }

    /**
     * Handles what the process returned for the request, on the thread of the execution. Returns, for the log, the
     * error of a request that the model must not reschedule; otherwise {@code null}.
     */
    @Nullable
    BackendException onReturned(RequestResult result) {
        if (ended.get() || result.kind() == RequestResult.Kind.NOTHING) {
            result.release();
        } else if (result.kind() == RequestResult.Kind.RESCHEDULE) {
            return reschedule();
        } else if (sender != null) {
            onResponse(result);
        } else {
            returned(result);
        }
        return null;
    }

    private void returned(RequestResult result) {
        if (!end()) {
            result.release();
            return;
        }
        BackendException error = result.error();
        if (error != null) {
            request.fail(error);
            return;
        }
        try {
            result.putInto(request.response());
        } catch (BackendException e) {
            request.fail(e);
        }
    }

    private @Nullable BackendException reschedule() {
        try {
            request.reschedule();
            end();
            rescheduled = true;
            return null;
        } catch (IllegalStateException e) {
            BackendException refusal = new BackendException(
                    ErrorCode.INTERNAL,
                    "Failed to release request: Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the"
                            + " model is not configured to handle such a flag.",
                    e);
            fail(refusal);
            return refusal;
        }
    }

    void onResponse(RequestResult result) {
        ResponseSender open = sender;
        if (ended.get() || open == null) {
            result.release();
            return;
        }
        if (result.isFinal() && !end()) {
            result.release();
            return;
        }
        BackendException error = result.error();
        if (error != null) {
            if (result.isFinal()) {
                open.fail(error);
            } else {
                open.sendError(error);
                grant(open, 0);
            }
        } else if (result.kind() == RequestResult.Kind.OUTPUTS) {
            respond(open, result);
        } else if (result.isFinal()) {
            open.complete();
        }
    }

    private void respond(ResponseSender open, RequestResult result) {
        long size = result.byteSize();
        InferenceResponse response;
        try {
            response = open.newResponse();
        } catch (RuntimeException | Error e) {
            result.release();
            failBroken(open, e);
            throw e;
        }
        try {
            result.putInto(response);
            if (result.isFinal()) {
                open.complete(response);
            } else {
                open.send(response);
                grant(open, size);
            }
        } catch (BackendException e) {
            response.discard();
            if (result.isFinal()) {
                open.fail(e);
            } else {
                open.sendError(e);
                grant(open, size);
            }
        } catch (RuntimeException | Error e) {
            response.discard();
            failBroken(open, e);
            throw e;
        }
    }

    /** Ends a request if a defect prevents its response: nothing else would end it. */
    private void failBroken(ResponseSender open, Throwable cause) {
        end();
        open.fail(new BackendException(ErrorCode.INTERNAL, "a response cannot be sent: " + cause, cause));
    }

    /** Grants the process another response once the client has read: it has used one of its window. */
    private void grant(ResponseSender open, long size) {
        int wanted = Math.clamp(WINDOW_BYTES / Math.max(size, 1), SMALLEST_WINDOW, LARGEST_WINDOW);
        if (window > wanted) {
            window--; // the process is not given this one again
        } else {
            owed.incrementAndGet();
        }
        if (owed.get() >= window / 2) {
            if (window < wanted) {
                owed.addAndGet(wanted - window);
                window = wanted;
            }
            if (open.isReady()) {
                credit();
            } else {
                open.onReady(this::credit);
            }
        }
    }

    private void credit() {
        int more = owed.getAndSet(0);
        while (more > 0) {
            int part = Math.min(more, FrameType.MAX_COUNT);
            send(FrameType.CREDIT, part);
            more -= part;
        }
    }

    /** Releases the inputs after the execution has returned: the process does not read them any more. */
    void releaseInputs() {
        ResponseSender open = sender;
        if (open != null && !ended.get()) {
            open.releaseInputs();
        }
    }

    /** Ends the request with the error of its execution, which also takes a reschedule back. */
    void failFor(BackendException error) {
        ResponseSender open = sender;
        if (rescheduled && open != null) {
            rescheduled = false;
            open.fail(error);
        } else {
            fail(error);
        }
    }

    /** Ends the request with an error, unless it has ended. */
    void fail(BackendException error) {
        if (end()) {
            ResponseSender open = sender;
            if (open != null) {
                open.fail(error);
            } else {
                request.fail(error);
            }
        }
    }

    /** Says that the request ends now; returns whether it had not ended before. */
    boolean end() {
        boolean first = ended.compareAndSet(false, true);
        CancelHook registered = hook;
        if (first && registered != null) {
            registered.close();
        }
        return first;
    }

    private void send(int type, int count) {
        sink.send(new FrameWriter().begin(type, 0, count, handle).end());
    }
}
