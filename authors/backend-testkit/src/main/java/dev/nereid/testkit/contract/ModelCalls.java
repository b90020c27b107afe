package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** The requests that one loaded model sends to others. Safe for use by any thread; the test's thread closes it. */
final class ModelCalls implements AutoCloseable {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final Queue<CompletableFuture<?>> responders = new ConcurrentLinkedQueue<>();
    private final FakeModelClient client;
    private final Duration timeout;

    /**
     * Creates the client of a model that is being loaded.
     *
     * @param timeout how long the close waits for responders
     */
    ModelCalls(CalledModels models, Duration timeout) {
        this.timeout = timeout;
        client = new FakeModelClient(
                memory,
                request -> responders.add(models.responder().apply(request)),
                models.names().toArray(String[]::new));
    }

    ModelClient client() {
        return client;
    }

    /** Responds with the outputs of functions, on virtual threads: the server too responds on threads of others. */
    static CalledModels of(Map<String, UnaryOperator<Map<String, Tensor>>> functions) {
        Map<String, UnaryOperator<Map<String, Tensor>>> models = Map.copyOf(functions);
        return new CalledModels(models.keySet(), request -> {
            UnaryOperator<Map<String, Tensor>> model = models.get(request.model());
            if (model == null) {
                request.fail(new BackendException(
                        ErrorCode.NOT_FOUND, "Request for unknown model: '" + request.model() + "' is not found"));
                return CompletableFuture.completedFuture(null);
            }
            return CompletableFuture.supplyAsync(() -> model.apply(request.inputs()), Thread::startVirtualThread)
                    .handle((outputs, failure) -> end(request, outputs, failure));
        });
    }

    /** Responds as an action does, which completes the request when it likes. */
    static CalledModels of(Consumer<FakeModelRequest> responder, Set<String> names) {
        return new CalledModels(names, request -> {
            responder.accept(request);
            return CompletableFuture.completedFuture(null);
        });
    }

    private static FakeModelRequest end(
            FakeModelRequest request, @Nullable Map<String, Tensor> outputs, @Nullable Throwable failure) {
        if (outputs != null) {
            request.respond(outputs);
            request.complete();
            return request;
        }
        request.fail(error(request.model(), failure instanceof CompletionException ? failure.getCause() : failure));
        return request;
    }

    private static BackendException error(String model, @Nullable Throwable cause) {
        if (cause instanceof BackendException error) {
            return error;
        }
        String place = "model '" + model + "' of the test: ";
        return cause == null
                ? new BackendException(ErrorCode.INTERNAL, place + "returned null (expected: outputs by name)")
                : new BackendException(ErrorCode.INTERNAL, place + cause, cause);
    }

    /**
     * Waits for the responders, after the close of the model.
     *
     * @throws AssertionError if a response or one of its outputs is in use, or if its receiver threw an exception
     */
    @Override
    public void close() {
        responders.forEach(this::await);
        for (FakeModelRequest request : client.sent()) {
            if (request.openResponses() > 0) {
                boolean isOne = request.openResponses() == 1;
                throw new AssertionError((isOne ? "a response" : request.openResponses() + " responses") + " of model '"
                        + request.model() + "'" + (isOne ? " was" : " were")
                        + " not closed (expected: ModelResponse.close, such as by try-with-resources)");
            }
        }
        memory.close();
    }

    private void await(CompletableFuture<?> responder) {
        try {
            responder.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw new AssertionError("the receiver of a response threw " + e.getCause(), e.getCause());
        } catch (TimeoutException e) {
            throw new AssertionError("a called model of the test has not responded after " + timeout, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
    }
}
