package dev.nereid.spi.function;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The backend around an {@link AsyncTensorFunction}. Immutable.
 *
 * <p>Each execution is deferred, and completed by whichever comes last: the start of all requests or the end of the last
 * one. That holds for stages that throw, complete twice or complete on the stack of the start.
 */
final class AsyncFunctionBackend extends FunctionBackend<AsyncTensorFunction> {
    AsyncFunctionBackend(AsyncTensorFunction function) {
        super(function, BackendTraits.DEFAULT.withMaxDeferred(function.maxDeferred()), false, function::open);
    }

    @Override
    ModelInstance instance(AsyncTensorFunction opened, ModelContext context) {
        return batch -> execute(opened, batch, context);
    }

    private void execute(AsyncTensorFunction opened, Batch batch, ModelContext context) {
        List<InferenceRequest> requests = batch.requests();
        // One more than there are requests: the execution does not end before all of them have started.
        AtomicInteger open = new AtomicInteger(requests.size() + 1);
        DeferredExecution execution = batch.defer();
        @Nullable Throwable fatal = null;
        for (InferenceRequest request : requests) {
            AtomicBoolean ended = new AtomicBoolean();
            Runnable end = () -> {
                if (ended.compareAndSet(false, true)) {
                    end(open, execution);
                }
            };
            try {
                start(opened, request, context, end);
            } catch (RuntimeException
                    | Error e) { // thrown when the other requests have started: the execution has to end
                fatal = e;
                end.run();
            }
        }
        end(open, execution);
        if (fatal instanceof Error error) {
            throw error;
        }
        if (fatal instanceof RuntimeException exception) {
            throw exception;
        }
    }

    /** Calls the function; an exception becomes a failed stage. Runs the action when the request is complete. */
    private void start(AsyncTensorFunction opened, InferenceRequest request, ModelContext context, Runnable end) {
        try {
            CompletionStage<?> stage = opened.apply(request, context);
            if (stage == null) {
                throw new NullPointerException("apply returned null");
            }
            stage.whenComplete((ignored, failure) -> complete(request, context, failure, end));
        } catch (Exception e) { // also a checked one of another language
            complete(request, context, e, end);
        }
    }

    private void complete(InferenceRequest request, ModelContext context, @Nullable Throwable failure, Runnable end) {
        try {
            if (failure != null) {
                request.fail(error(request, context, unwrap(failure)));
            }
        } finally {
            end.run();
        }
    }

    private BackendException error(InferenceRequest request, ModelContext context, Throwable failure) {
        return failure instanceof CancellationException && request.isCancelled()
                ? new BackendException(ErrorCode.CANCELLED, "request was cancelled", failure)
                : failure(context, failure);
    }

    private static void end(AtomicInteger open, DeferredExecution execution) {
        if (open.decrementAndGet() == 0) {
            execution.complete();
        }
    }

    private static Throwable unwrap(Throwable failure) {
        Throwable cause = failure;
        while (cause instanceof CompletionException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause;
    }
}
