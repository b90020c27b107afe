package dev.nereid.spi;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** The backend around an {@link AsyncTensorFunction}. Immutable. */
final class AsyncFunctionBackend implements Backend {
    private final AsyncTensorFunction function;

    AsyncFunctionBackend(AsyncTensorFunction function) {
        this.function = function;
    }

    @Override
    public BackendTraits traits() {
        return BackendTraits.DEFAULT.withParallelInstances();
    }

    @Override
    public Model load(ModelContext context) throws BackendException {
        if (context.settings().decoupled()) {
            throw FunctionBackend.decoupled(function, context);
        }
        return instance -> batch -> execute(batch, context);
    }

    private void execute(Batch batch, ModelContext context) {
        // One more than there are requests: the execution does not end before all of them have started.
        AtomicInteger open = new AtomicInteger(batch.requests().size() + 1);
        DeferredExecution execution = batch.defer();
        @Nullable Error fatal = null;
        for (InferenceRequest request : batch.requests()) {
            CompletionStage<?> stage;
            try {
                stage = start(request, context);
            } catch (Error e) { // thrown when the other requests have started: the execution has to end
                fatal = e;
                stage = CompletableFuture.failedStage(e);
            }
            stage.whenComplete((ignored, failure) -> {
                if (failure != null) {
                    request.fail(FunctionBackend.failure(function, context, unwrap(failure)));
                }
                end(open, execution);
            });
        }
        end(open, execution);
        if (fatal != null) {
            throw fatal;
        }
    }

    /** Calls the function; an exception becomes a failed stage. */
    private CompletionStage<?> start(InferenceRequest request, ModelContext context) {
        try {
            CompletionStage<?> stage = function.apply(request, context);
            return stage == null ? CompletableFuture.failedStage(new NullPointerException("apply returned null")) : stage;
        } catch (BackendException | RuntimeException e) {
            return CompletableFuture.failedStage(e);
        }
    }

    private static void end(AtomicInteger open, DeferredExecution execution) {
        if (open.decrementAndGet() == 0) {
            execution.finish();
        }
    }

    private static Throwable unwrap(Throwable failure) {
        @Nullable Throwable cause = failure instanceof CompletionException ? failure.getCause() : null;
        return cause == null ? failure : cause;
    }
}
