package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A response with outputs in memory that detects leaks. Confined to one thread at a time. */
final class RecordedResponse implements InferenceResponse {
    private final LeakCheckingMemory memory;
    private final Map<String, Tensor> outputs = new LinkedHashMap<>();
    private final Map<String, Object> parameters = new LinkedHashMap<>();
    private final List<Runnable> releases = new ArrayList<>();
    private boolean ended;

    RecordedResponse(LeakCheckingMemory memory) {
        this.memory = memory;
    }

    Map<String, Tensor> outputs() {
        return Map.copyOf(outputs);
    }

    Parameters parameters() {
        return Parameters.of(parameters);
    }

    /** Returns whether the response was sent or discarded. */
    boolean hasEnded() {
        return ended;
    }

    /** Ends the response; its outputs stay. */
    void end() {
        ended = true;
    }

    /** Frees the outputs. */
    void release() {
        List<Runnable> all = List.copyOf(releases);
        releases.clear();
        all.forEach(Runnable::run);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) {
        return allocate(output, type, shape, shape.byteSize(type));
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) {
        return allocate(output, DataType.BYTES, shape, byteSize);
    }

    private Tensor allocate(String output, DataType type, Shape shape, long byteSize) {
        try {
            TensorBuffer buffer = memory.allocate(byteSize);
            Tensor tensor = Tensor.of(type, shape, buffer.segment());
            put(output, tensor, buffer::close);
            return tensor;
        } catch (InferenceException e) {
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }

    @Override
    public void put(String output, Tensor tensor, Runnable release) {
        if (ended) {
            release.run();
            throw new IllegalStateException("response: sent or discarded (expected: not yet)");
        }
        if (outputs.putIfAbsent(output, tensor) != null) {
            release.run();
            throw new BackendException(ErrorCode.INTERNAL, "output '" + output + "': returned twice");
        }
        releases.add(release);
    }

    @Override
    public void parameter(String name, String value) {
        parameters.put(name, value);
    }

    @Override
    public void parameter(String name, long value) {
        parameters.put(name, value);
    }

    @Override
    public void parameter(String name, double value) {
        parameters.put(name, value);
    }

    @Override
    public void parameter(String name, boolean value) {
        parameters.put(name, value);
    }

    @Override
    public void discard() {
        ended = true;
        release();
    }
}
