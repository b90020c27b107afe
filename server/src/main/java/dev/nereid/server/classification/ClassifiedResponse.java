package dev.nereid.server.classification;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.ParameterValue;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** A response with some outputs replaced by their classes. Owns the response and the memory of the classes. */
final class ClassifiedResponse implements InferResponse {
    private final InferResponse response;
    private final List<NamedTensor> outputs;
    private final List<TensorBuffer> memory;
    private final AtomicBoolean closed = new AtomicBoolean();

    private ClassifiedResponse(InferResponse response, List<NamedTensor> outputs, List<TensorBuffer> memory) {
        this.response = response;
        this.outputs = outputs;
        this.memory = memory;
    }

    /** Replaces outputs; the response stays with the caller if that fails. */
    static ClassifiedResponse of(InferResponse response, Classifier classifier, List<RequestedOutput> requested) {
        List<NamedTensor> outputs = new ArrayList<>();
        List<TensorBuffer> memory = new ArrayList<>();
        try {
            for (NamedTensor output : response.outputs()) {
                long count = classes(output.name(), requested);
                if (count == 0) {
                    outputs.add(output);
                } else {
                    Classifier.Classes classes = classifier.classify(output, count);
                    memory.add(classes.memory());
                    outputs.add(new NamedTensor(output.name(), classes.tensor()));
                }
            }
        } catch (RuntimeException | Error e) {
            memory.forEach(TensorBuffer::close);
            throw e;
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
    public void close() {
        if (closed.compareAndSet(false, true)) {
            memory.forEach(TensorBuffer::close);
            response.close();
        }
    }
}
