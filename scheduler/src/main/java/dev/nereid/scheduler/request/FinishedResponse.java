package dev.nereid.scheduler.request;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ParameterValue;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.Map;

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

    @SuppressWarnings("UnusedVariable") // by CLOSED
    private volatile boolean closed;

    /** Retains the request, and takes over a reference to each piece of memory. */
    public FinishedResponse(
            ScheduledRequest request,
            List<NamedTensor> outputs,
            List<ReferenceCountedMemory> memory,
            Map<String, ParameterValue> parameters,
            boolean last) {
        this.request = request;
        this.outputs = outputs;
        this.memory = memory;
        this.parameters = parameters;
        this.last = last;
        request.retain();
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

    @Override
    public void close() {
        if (CLOSED.compareAndSet(this, false, true)) {
            for (int i = 0; i < memory.size(); i++) {
                memory.get(i).release();
            }
            request.release();
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
