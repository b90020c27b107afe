package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.TensorLease;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** A response of a fake step with one number in each output, in memory that is checked for leaks. */
final class StepResponse implements InferResponse {
    private final List<NamedTensor> outputs = new ArrayList<>();
    private final List<ReferenceCountedMemory> memory = new ArrayList<>();
    private final Map<String, ParameterValue> parameters;
    private final boolean last;
    private final AtomicBoolean closed = new AtomicBoolean();

    StepResponse(TensorMemory pool, Map<String, Long> values, Map<String, ParameterValue> parameters, boolean last) {
        this.parameters = parameters;
        this.last = last;
        values.forEach((name, value) -> {
            TensorBuffer buffer = pool.allocate(Long.BYTES);
            buffer.segment().set(ValueLayout.JAVA_LONG, 0, value);
            outputs.add(new NamedTensor(name, Tensor.of(DataType.INT64, Shape.of(1), buffer.segment())));
            memory.add(ReferenceCountedMemory.of(buffer));
        });
    }

    @Override
    public String model() {
        return "step";
    }

    @Override
    public long version() {
        return 1;
    }

    @Override
    public String id() {
        return "";
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
    public TensorLease lease(int output) {
        ReferenceCountedMemory held = memory.get(output);
        held.retain();
        AtomicBoolean released = new AtomicBoolean();
        return new TensorLease() {
            @Override
            public Tensor tensor() {
                return outputs.get(output).tensor();
            }

            @Override
            public void close() {
                if (released.compareAndSet(false, true)) {
                    held.release();
                }
            }
        };
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            memory.forEach(ReferenceCountedMemory::release);
        }
    }
}
