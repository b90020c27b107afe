package dev.nereid.examples.identity;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** A request that records its responses. Confined to the test's thread. */
final class RecordedRequest implements InferenceRequest, InferenceResponse {
    final Map<String, Tensor> completed = new HashMap<>();
    final List<BackendException> failures = new ArrayList<>();

    private final Map<String, Tensor> tensors;

    RecordedRequest(Map<String, Tensor> tensors) {
        this.tensors = tensors;
    }

    @Override
    public String id() {
        return "";
    }

    @Override
    public int batchSize() {
        return 1;
    }

    @Override
    public List<String> inputs() {
        return List.copyOf(tensors.keySet());
    }

    @Override
    public Optional<Tensor> input(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    @Override
    public List<String> requestedOutputs() {
        return List.of("OUTPUT0", "OUTPUT1");
    }

    @Override
    public Parameters parameters() {
        return Parameters.of(Map.of());
    }

    @Override
    public Optional<Sequence> sequence() {
        return Optional.empty();
    }

    @Override
    public long priority() {
        return 0;
    }

    @Override
    public OptionalLong deadlineNanos() {
        return OptionalLong.empty();
    }

    @Override
    public boolean isCancelled() {
        return false;
    }

    @Override
    public CancelHook onCancel(Runnable action) {
        return () -> {};
    }

    @Override
    public InferenceResponse response() {
        return this;
    }

    @Override
    public void fail(BackendException error) {
        failures.add(error);
    }

    @Override
    public ResponseSender sender() {
        throw new IllegalStateException("model: not decoupled");
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
        completed.put(output, tensor);
        release.run();
    }

    @Override
    public void parameter(String name, String value) {
        throw new AssertionError("a parameter " + name);
    }

    @Override
    public void parameter(String name, long value) {
        throw new AssertionError("a parameter " + name);
    }

    @Override
    public void parameter(String name, double value) {
        throw new AssertionError("a parameter " + name);
    }

    @Override
    public void parameter(String name, boolean value) {
        throw new AssertionError("a parameter " + name);
    }

    @Override
    public void discard() {
        throw new AssertionError("a response given up");
    }
}
