package dev.nereid.backend.onnx;

import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeBatch;
import java.util.List;
import java.util.Set;

/** Passes the calls of a batch on to another one, for tests that change some of them. */
interface ForwardingBatch extends Batch {
    /** Returns the other batch. */
    FakeBatch batch();

    @Override
    default Tensor gather(String input) {
        return batch().gather(input);
    }

    @Override
    default List<InferenceRequest> requests() {
        return batch().requests();
    }

    @Override
    default int size() {
        return batch().size();
    }

    @Override
    default Set<String> inputs() {
        return batch().inputs();
    }

    @Override
    default Set<String> requestedOutputs() {
        return batch().requestedOutputs();
    }

    @Override
    default Tensor gather(String input, MemoryPlace place) {
        return batch().gather(input, place);
    }

    @Override
    default Tensor allocate(String output, DataType type, Shape shape) {
        return batch().allocate(output, type, shape);
    }

    @Override
    default Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
        return batch().allocate(output, type, shape, place);
    }

    @Override
    default Tensor allocateBytes(String output, Shape shape, long byteSize) {
        return batch().allocateBytes(output, shape, byteSize);
    }

    @Override
    default void put(String output, Tensor tensor, Runnable release) {
        batch().put(output, tensor, release);
    }

    @Override
    default DeferredExecution defer() {
        return batch().defer();
    }

    @Override
    default boolean takesOutput(String output, MemoryPlace place) {
        return batch().takesOutput(output, place);
    }
}
