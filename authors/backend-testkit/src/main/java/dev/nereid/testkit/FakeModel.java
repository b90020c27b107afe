package dev.nereid.testkit;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.ModelMetadata;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * A model of a {@link FakeInferenceServer}. Immutable.
 *
 * @param description the model's metadata; each of its versions serves
 * @param respond completes a request, now or later, on any thread
 * @param executor runs {@code respond}
 */
public record FakeModel(
        ModelMetadata description, Consumer<ReceivedRequest> respond, Executor executor, boolean isReady) {
    public FakeModel {
        requireNonNull(description, "description");
        requireNonNull(respond, "respond");
        requireNonNull(executor, "executor");
    }

    /**
     * Creates a model that responds to each request with its inputs. It has version 1 and runs on the caller's thread.
     *
     * @param type the type of INPUT0 and OUTPUT0
     * @param maxBatchSize the largest batch, or 0 for none
     * @param dims the dimensions of INPUT0 and OUTPUT0 without batch dimension
     */
    public static FakeModel identity(String name, DataType type, int maxBatchSize, long... dims) {
        Shape shape = Shape.of(dims);
        ModelMetadata description = new ModelMetadata(
                name,
                List.of(1L),
                "identity",
                maxBatchSize,
                false,
                List.of(TensorSpec.of("INPUT0", type, shape)),
                List.of(TensorSpec.of("OUTPUT0", type, shape)));
        return new FakeModel(description, ReceivedRequest::respondWithInputs, Runnable::run, true);
    }

    /**
     * Returns the same model with another response.
     *
     * @param changed completes a request, now or later, on any thread
     */
    public FakeModel responding(Consumer<ReceivedRequest> changed) {
        return new FakeModel(description, changed, executor, isReady);
    }

    /**
     * Returns the same model with another executor.
     *
     * @param changed runs the code that responds
     */
    public FakeModel on(Executor changed) {
        return new FakeModel(description, respond, changed, isReady);
    }

    /** Returns the same model with another readiness. */
    public FakeModel ready(boolean changed) {
        return new FakeModel(description, respond, executor, changed);
    }

    /** Returns the same model as a decoupled one. */
    public FakeModel decoupled() {
        ModelMetadata changed = new ModelMetadata(
                description.name(),
                description.versions(),
                description.platform(),
                description.maxBatchSize(),
                true,
                description.inputs(),
                description.outputs());
        return new FakeModel(changed, respond, executor, isReady);
    }

    /** Returns the same model with one more input. The input has the type and shape of the first. */
    public FakeModel withInput(String name) {
        TensorSpec first = description.inputs().getFirst();
        List<TensorSpec> inputs = new ArrayList<>(description.inputs());
        inputs.add(TensorSpec.of(name, first.type(), first.dims()));
        ModelMetadata changed = new ModelMetadata(
                description.name(),
                description.versions(),
                description.platform(),
                description.maxBatchSize(),
                description.decoupled(),
                inputs,
                description.outputs());
        return new FakeModel(changed, respond, executor, isReady);
    }

    void respond(ReceivedRequest request) {
        executor.execute(() -> respond.accept(request));
    }
}
