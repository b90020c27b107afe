package dev.nereid.scheduler.request;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.TensorLease;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A complete response, which holds the memory of its outputs and inputs until closed. Immutable except for its close;
 * safe for use by any thread.
 */
public final class FinishedResponse implements InferResponse, ResponseEvent {
    private static final VarHandle CLOSED;

    static {
        try {
            CLOSED = MethodHandles.lookup().findVarHandle(FinishedResponse.class, "closed", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final ScheduledRequest request;
    private final List<NamedTensor> outputs;
    private final List<ReferenceCountedMemory> memory;
    private final Map<String, ParameterValue> parameters;
    private final boolean last;

    /** Runs before the memory is released; {@code null} for no action. */
    private final @Nullable Runnable beforeRelease;

    private volatile boolean closed;

    /** Retains the request, and takes over a reference to each piece of memory: one for each output, or one for all. */
    public FinishedResponse(
            ScheduledRequest request,
            List<NamedTensor> outputs,
            List<ReferenceCountedMemory> memory,
            Map<String, ParameterValue> parameters,
            boolean last) {
        this(request, outputs, memory, parameters, last, null);
    }

    /**
     * Retains the request, and takes over a reference to each piece of memory.
     *
     * @param memory the memory of each output, or one piece for all
     * @param beforeRelease runs before the memory is released; {@code null} for no action
     */
    public FinishedResponse(
            ScheduledRequest request,
            List<NamedTensor> outputs,
            List<ReferenceCountedMemory> memory,
            Map<String, ParameterValue> parameters,
            boolean last,
            @Nullable Runnable beforeRelease) {
        this.beforeRelease = beforeRelease;
        this.request = request;
        this.outputs = outputs;
        this.memory = memory;
        this.parameters = parameters;
        this.last = last;
        request.retain();
        request.model().drain().opened();
    }

    @Override
    public String model() {
        return request.checked().model();
    }

    @Override
    public long version() {
        return request.checked().version();
    }

    @Override
    public Object source() {
        return request.model().source();
    }

    @Override
    public String id() {
        return request.checked().id();
    }

    @Override
    public List<NamedTensor> outputs() {
        return outputs;
    }

    @Override
    public Map<String, ParameterValue> parameters() {
        return parameters;
    }

    @Override
    public boolean isFinal() {
        return last;
    }

    /** Returns whether an output has a fence: it may be pending. */
    public boolean isPending() {
        for (NamedTensor output : outputs) {
            if (output.tensor().fence().isPresent()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public TensorLease lease(int output) {
        NamedTensor leased = outputs.get(output);
        ReferenceCountedMemory held = memory.get(memory.size() == 1 ? 0 : output);
        if (closed || !request.tryRetain()) {
            throw closedError();
        }
        if (!held.tryRetain()) {
            request.release();
            throw closedError();
        }
        request.model().drain().opened();
        return new OutputLease(request, leased.tensor(), held, new AtomicBoolean());
    }

    /** Holds references to the memory of one output and to its request. */
    private record OutputLease(
            ScheduledRequest request, Tensor tensor, ReferenceCountedMemory memory, AtomicBoolean closed)
            implements TensorLease {
        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                memory.release();
                end(request);
            }
        }
    }

    /** Ends the use of the request by a response or a lease. */
    private static void end(ScheduledRequest request) {
        request.model().drain().closed();
        request.release();
    }

    private static IllegalStateException closedError() {
        return new IllegalStateException("response: closed (expected: leased before its close)");
    }

    @Override
    public void close() {
        if (!CLOSED.compareAndSet(this, false, true)) {
            return;
        }
        try {
            if (beforeRelease != null) {
                beforeRelease.run();
            }
        } catch (RuntimeException e) {
            request.log("check of outputs failed", e);
        } finally {
            for (int i = 0; i < memory.size(); i++) {
                memory.get(i).release();
            }
            end(request);
        }
    }

    @Override
    public void deliverTo(ResponseObserver observer) {
        observer.onResponse(this);
    }

    @Override
    public void discard() {
        close();
    }
}
