package dev.nereid.server.classification;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.TensorLease;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A response with some outputs replaced by their classes. Owns the response and the memory of the classes. */
final class ClassifiedResponse implements InferResponse {
    private final InferResponse response;
    private final List<NamedTensor> outputs;

    /** The memory of the classes of each output; {@code null} for an output of the response. */
    private final @Nullable ReferenceCountedMemory[] memory;

    private final AtomicBoolean closed = new AtomicBoolean();

    private ClassifiedResponse(
            InferResponse response, List<NamedTensor> outputs, @Nullable ReferenceCountedMemory[] memory) {
        this.response = response;
        this.outputs = outputs;
        this.memory = memory;
    }

    /** Replaces outputs; the response stays with the caller if that fails. */
    static ClassifiedResponse of(InferResponse response, Classifier classifier, List<RequestedOutput> requested) {
        List<NamedTensor> outputs = new ArrayList<>();
        @Nullable
        ReferenceCountedMemory[] memory =
                new @Nullable ReferenceCountedMemory[response.outputs().size()];
        boolean classified = false;
        try {
            for (NamedTensor output : response.outputs()) {
                long count = classes(output.name(), requested);
                if (count == 0) {
                    outputs.add(output);
                } else {
                    Classifier.Classes classes = classifier.classify(output, count);
                    memory[outputs.size()] = ReferenceCountedMemory.of(classes.memory());
                    outputs.add(new NamedTensor(output.name(), classes.tensor()));
                }
            }
            classified = true;
        } finally {
            if (!classified) {
                release(memory);
            }
        }
        return new ClassifiedResponse(response, List.copyOf(outputs), memory);
    }

    private static long classes(String output, List<RequestedOutput> requested) {
        for (RequestedOutput candidate : requested) {
            if (candidate.name().equals(output)) {
                return candidate.classes();
            }
        }
        return 0;
    }

    @Override
    public String model() {
        return response.model();
    }

    @Override
    public long version() {
        return response.version();
    }

    @Override
    public Object source() {
        return response.source();
    }

    @Override
    public String id() {
        return response.id();
    }

    @Override
    public List<NamedTensor> outputs() {
        return outputs;
    }

    @Override
    public Map<String, ParameterValue> parameters() {
        return response.parameters();
    }

    @Override
    public boolean isFinal() {
        return response.isFinal();
    }

    @Override
    public TensorLease lease(int output) {
        TensorLease original = response.lease(output);
        ReferenceCountedMemory classes = memory[output];
        if (classes == null) {
            return original;
        }
        if (!classes.tryRetain()) {
            original.close();
            throw new IllegalStateException("response: closed (expected: leased before its close)");
        }
        return new ClassesLease(outputs.get(output).tensor(), classes, original, new AtomicBoolean());
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            release(memory);
            response.close();
        }
    }

    private static void release(@Nullable ReferenceCountedMemory[] memory) {
        for (ReferenceCountedMemory classes : memory) {
            if (classes != null) {
                classes.release();
            }
        }
    }

    /** Leases the classes of an output, and the output, which keeps the request in flight. */
    private record ClassesLease(Tensor tensor, ReferenceCountedMemory memory, TensorLease output, AtomicBoolean closed)
            implements TensorLease {
        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                memory.release();
                output.close();
            }
        }
    }
}
