package dev.nereid.examples.identity;

import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Set;

/** A batch of one request, completed request by request. Confined to the test's thread. */
record OneRequestBatch(RecordedRequest request) implements Batch {
    @Override
    public List<InferenceRequest> requests() {
        return List.of(request);
    }

    @Override
    public int size() {
        return request.batchSize();
    }

    @Override
    public Set<String> inputs() {
        return Set.copyOf(request.inputs());
    }

    @Override
    public Set<String> requestedOutputs() {
        return Set.copyOf(request.requestedOutputs());
    }

    @Override
    public Tensor gather(String input) {
        throw new AssertionError("a copy of " + input);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) {
        throw new AssertionError("memory for " + output);
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) {
        throw new AssertionError("memory for " + output);
    }

    @Override
    public void put(String output, Tensor tensor, Runnable release) {
        throw new AssertionError("a batch-wide " + output);
    }

    @Override
    public DeferredExecution defer() {
        throw new AssertionError("a deferred execution");
    }
}
