package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/** Waits for the outcome of one request, and counts terminal notifications. Safe for use by several threads. */
final class RecordingObserver implements ResponseObserver {
    /** The content of a response. */
    record Values(long version, List<Float> values, Map<String, ParameterValue> parameters) {}

    private static final long TIMEOUT_SECONDS = 30;

    private final CompletableFuture<Values> outcome = new CompletableFuture<>();
    private final AtomicInteger terminals = new AtomicInteger();
    private volatile Shape shape = Shape.SCALAR;
    private volatile Cancellation cancellation = () -> {};

    /** Sends an input of numbers to a model. */
    static RecordingObserver to(InferenceServer server, ModelRef model, String input, long[] dims, float... values) {
        return to(server, model, input, RequestOptions.DEFAULT, dims, values);
    }

    /** Sends a number to a model of the recording backend, as part of a sequence. */
    static RecordingObserver to(InferenceServer server, String model, Sequence position, float value) {
        return to(server, ModelRef.latest(model), position, value);
    }

    /** Sends numbers to a version of a model of the recording backend, as a part of a sequence. */
    static RecordingObserver to(InferenceServer server, ModelRef model, Sequence position, float... values) {
        return to(server, model, position, new long[] {1, values.length}, values);
    }

    /** Sends numbers in a shape, as a part of a sequence. */
    static RecordingObserver to(
            InferenceServer server, ModelRef model, Sequence position, long[] dims, float... values) {
        RequestOptions options = new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position));
        return to(server, model, "INPUT0", options, dims, values);
    }

    private static RecordingObserver to(
            InferenceServer server,
            ModelRef model,
            String input,
            RequestOptions options,
            long[] dims,
            float... values) {
        TensorBuffer memory = server.memory().allocate(values.length * (long) Float.BYTES);
        for (int i = 0; i < values.length; i++) {
            memory.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, values[i]);
        }
        InputTensor tensor = InputTensor.of(input, DataType.FP32.name(), dims, memory.segment(), MemoryPlace.HOST);
        RecordingObserver observer = new RecordingObserver();
        observer.cancellation = server.infer(
                new InferRequest(model, "", List.of(tensor), List.of(), Map.of(), options, memory::close), observer);
        return observer;
    }

    /** Asks a model of the recording backend. */
    static RecordingObserver to(InferenceServer server, String model, float... values) {
        return to(server, ModelRef.latest(model), "INPUT0", new long[] {1, values.length}, values);
    }

    @Override
    public void onResponse(InferResponse response) {
        try (response) {
            Tensor output = response.outputs().getFirst().tensor();
            List<Float> values = output.data()
                    .elements(ValueLayout.JAVA_FLOAT_UNALIGNED)
                    .map(element -> element.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0))
                    .toList();
            Values read = new Values(response.version(), values, response.parameters());
            shape = output.shape();
            terminals.incrementAndGet();
            outcome.complete(read);
        }
    }

    @Override
    public void onCompleted() {
        terminals.incrementAndGet();
        outcome.completeExceptionally(new AssertionError("end without a response"));
    }

    @Override
    public void onError(InferenceException error) {
        terminals.incrementAndGet();
        outcome.completeExceptionally(error);
    }

    /** Waits for the outcome. */
    void await() {
        try {
            outcome.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            assertThat(e.getCause()).isInstanceOf(InferenceException.class);
        } catch (InterruptedException | TimeoutException e) {
            throw new AssertionError("no response", e);
        }
    }

    /** Cancels the request. */
    void cancel() {
        cancellation.cancel();
    }

    boolean isFailed() {
        return outcome.isCompletedExceptionally();
    }

    int terminals() {
        return terminals.get();
    }

    Values response() {
        try {
            return outcome.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new AssertionError("failed", e.getCause());
        } catch (InterruptedException | TimeoutException e) {
            throw new AssertionError("no response", e);
        }
    }

    /** Waits for the response, and returns the shape of its first output. */
    Shape shape() {
        response();
        return shape;
    }

    InferenceException error() {
        try {
            throw new AssertionError("succeeded with " + outcome.get(TIMEOUT_SECONDS, TimeUnit.SECONDS));
        } catch (ExecutionException e) {
            if (e.getCause() instanceof InferenceException error) {
                return error;
            }
            throw new AssertionError("failed otherwise", e.getCause());
        } catch (InterruptedException | TimeoutException e) {
            throw new AssertionError("no response", e);
        }
    }
}
