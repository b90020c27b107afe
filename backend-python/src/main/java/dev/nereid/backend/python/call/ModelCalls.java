package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one process to models of the server, and the loads and unloads that it requests.
 *
 * <p>Frames are passed by one thread at a time, the one that reads the channel; {@link #close} and {@link #open} are safe
 * for use by any thread. Nothing here blocks. Responses are sent on the threads of the server that deliver them.
 *
 * <p>Inputs in shared memory are read in place, until the server and the other model have read them. The process may
 * change them meanwhile: so byte strings, which have a structure, are copied, as are inputs within frames.
 */
public final class ModelCalls {
    static final int MAX_CALLS = 10_000;

    /** The bound on the inputs of the calls in progress, in bytes. A call alone may have more. */
    static final long MAX_INPUT_BYTES = 1L << 30;

    private final ModelClient models;
    private final TensorMemory memory;
    private final System.Logger log;
    private final ResponseFrames frames;
    private final ModelControls controls;
    private final InputCopies copies = new InputCopies();
    private final OpenCall.Scope scope;
    private final Map<Long, OpenCall> calls = new ConcurrentHashMap<>();
    private final AtomicLong inputBytes = new AtomicLong();
    private final AtomicReference<@Nullable Runnable> idleAction = new AtomicReference<>();
    private volatile boolean closed;

    /**
     * Creates the calls of a process that has made none.
     *
     * @param inlineLimit the largest output that is sent within a frame, in bytes
     * @param log receives errors that are defects
     */
    public ModelCalls(ModelClient models, FrameSink sink, TensorMemory memory, int inlineLimit, System.Logger log) {
        this.models = models;
        this.memory = memory;
        this.log = log;
        frames = new ResponseFrames(sink, memory, inlineLimit);
        controls = new ModelControls(models, frames, log);
        scope = new OpenCall.Scope(frames, this::refusal, this::ended, log);
    }

    /**
     * Starts a call, as a frame CALL says. A request that cannot be sent is refused by a frame.
     *
     * @param frame at the first field behind the header; its memory is not used after this returns
     * @param running returns the batch of an execution by its number if the calling thread may use that now; {@code null}
     *     for an execution that has returned, or that is not known
     * @throws FrameException if the frame is broken, or names a call in progress; then no slot is held
     */
    public void onCall(FrameReader frame, LongFunction<@Nullable Batch> running) {
        if (calls.containsKey(frame.id())) {
            throw new FrameException("call: " + frame.id() + " is in progress (expected: a number not used before)");
        }
        CallFrame call = CallFrame.read(frame, memory);
        InputCopies.Copies copied = copies.begin();
        boolean sent = false;
        try {
            if (!closed) {
                sent = start(prepare(call, copied, running), call.model());
            }
        } catch (BackendException e) {
            frames.refused(call.id(), refusal(new OpenCall.CallTarget(call.model(), call.version()), e));
        } catch (RuntimeException e) {
            frames.refused(call.id(), defect(e, call.model()));
        } finally {
            if (sent) {
                copied.release();
            } else {
                call.release();
                copied.free();
            }
        }
    }

    private OpenCall prepare(CallFrame call, InputCopies.Copies copied, LongFunction<@Nullable Batch> running) {
        if (calls.size() >= MAX_CALLS) {
            throw new BackendException(ErrorCode.INTERNAL, CallErrors.tooManyCalls(MAX_CALLS));
        }
        long bytes = call.inputBytes();
        long before = inputBytes.get();
        if (before > 0 && before + bytes > MAX_INPUT_BYTES) {
            throw new BackendException(ErrorCode.INTERNAL, CallErrors.tooManyBytes(before, MAX_INPUT_BYTES));
        }
        if (call.version() < -1) {
            throw new BackendException(ErrorCode.NOT_FOUND, CallErrors.notReady(call.model()));
        }
        if (!call.isStream() && models.isDecoupled(call.model(), call.version())) {
            throw new BackendException(ErrorCode.INTERNAL, CallErrors.decoupled(call.model()));
        }
        ModelRequest request = models.request(call.model()).id(call.requestId()).timeoutMicros(call.timeoutMicros());
        if (call.version() >= 0) {
            request.version(call.version());
        }
        call.sequence().ifPresent(request::sequence);
        call.outputs().forEach(request::output);
        call.parameters().forEach((name, value) -> parameter(request, name, value));
        Batch cause = call.execution() == 0 ? null : running.apply(call.execution());
        if (cause != null) {
            request.onBehalfOf(cause);
        }
        addInputs(call, copied, request);
        return new OpenCall(call, request, bytes, scope);
    }

    private static void parameter(ModelRequest request, String name, Object value) {
        switch (value) {
            case Boolean flag -> request.parameter(name, flag);
            case Long number -> request.parameter(name, number);
            default -> request.parameter(name, value.toString());
        }
    }

    private static void addInputs(CallFrame call, InputCopies.Copies copied, ModelRequest request) {
        for (CallFrame.Input input : call.inputs()) {
            try {
                if (input.isInPlace()) {
                    request.input(input.name(), tensor(input, input.data()), input::release);
                } else {
                    Tensor copy = tensor(input, copied.copy(input.data()));
                    input.release();
                    request.input(input.name(), copy, copied::release);
                }
            } catch (OutOfMemoryError e) { // of the limit for native memory
                throw new BackendException(
                        ErrorCode.INTERNAL,
                        "input '" + input.name() + "': no memory for "
                                + input.data().byteSize() + " bytes",
                        e);
            }
        }
    }

    private static Tensor tensor(CallFrame.Input input, MemorySegment data) {
        return Tensor.of(input.name(), input.tensor().type(), input.tensor().shape(), data, MemoryPlace.HOST);
    }

    /** Sends a request; returns whether its inputs are released by the server. */
    private boolean start(OpenCall open, String model) {
        inputBytes.addAndGet(open.inputBytes());
        calls.put(open.id(), open);
        boolean sent = false;
        try {
            open.send();
            sent = true;
        } catch (BackendException e) {
            open.refuse(e);
        } catch (RuntimeException e) { // such as a cause with a finished execution
            open.refuse(new BackendException(ErrorCode.INTERNAL, defect(e, model), e));
        }
        if (closed) { // while it was sent
            open.drop();
            open.cancel();
        }
        return sent;
    }

    private String defect(RuntimeException e, String model) {
        log.log(System.Logger.Level.WARNING, "request to model '" + model + "' cannot be sent", e);
        return ResponseFrames.text(e);
    }

    /** Returns the text of a refusal; the reference has one for all models and versions that are not served. */
    private String refusal(OpenCall.CallTarget target, BackendException error) {
        return switch (error.code()) {
            case NOT_FOUND -> CallErrors.notReady(target.model());
            case UNAVAILABLE -> isReady(target) ? ResponseFrames.text(error) : CallErrors.notReady(target.model());
            default -> ResponseFrames.text(error);
        };
    }

    private boolean isReady(OpenCall.CallTarget target) {
        try {
            return models.isReady(target.model(), target.version());
        } catch (BackendException e) { // not found, or not loaded
            return false;
        }
    }

    private void ended(OpenCall call) {
        if (calls.remove(call.id(), call)) {
            inputBytes.addAndGet(-call.inputBytes());
            runIfIdle();
        }
    }

    private void runIfIdle() {
        if (calls.isEmpty()) {
            Runnable action = idleAction.getAndSet(null);
            if (action != null) {
                action.run();
            }
        }
    }

    /** Allows {@code more} responses, 0 or more, as CALL_CREDIT says. Does nothing for a call that has ended. */
    public void onCredit(long call, int more) {
        OpenCall open = calls.get(call);
        if (open != null) {
            open.credit(more);
        }
    }

    /** Cancels a call, as a frame CALL_CANCEL says. Its end still comes. Does nothing for a call that has ended. */
    public void onCancel(long call) {
        OpenCall open = calls.get(call);
        if (open != null) {
            open.cancel();
        }
    }

    /**
     * Drops the responses to come of a call, as a frame CALL_DROP says. The other model goes on to its end, until which the
     * call is open. Does nothing for a call that has ended.
     */
    public void onDrop(long call) {
        OpenCall open = calls.get(call);
        if (open != null) {
            open.drop();
        }
    }

    /**
     * Loads or unloads a model, or says whether it is ready, as a frame CONTROL says. A frame REPLY follows, perhaps later.
     *
     * @param frame at the first field behind the header; its memory is not used after this returns
     * @throws FrameException if the frame is broken
     */
    public void onControl(FrameReader frame) {
        controls.onControl(frame);
    }

    /** Returns the number of calls without a final response, or dropped but not ended by the other model. */
    public int open() {
        return calls.size();
    }

    /**
     * Runs an action once when no call is in progress: now, or on the thread that ends the last one. Calls may be made again
     * meanwhile.
     *
     * @param action short, does not block; replaces an earlier one that has not run
     */
    public void onIdle(Runnable action) {
        idleAction.set(action);
        runIfIdle();
    }

    /**
     * Cancels and drops all calls, since the process has ended. Responses that come later are closed, and calls that are
     * read later are not sent. Later calls do nothing.
     */
    public void close() {
        closed = true;
        for (OpenCall call : calls.values()) {
            call.drop();
            call.cancel();
        }
    }
}
