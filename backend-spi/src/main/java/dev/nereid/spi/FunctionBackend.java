package dev.nereid.spi;

import java.lang.System.Logger.Level;
import java.util.Optional;

/** The backend around a {@link TensorFunction}. Immutable. */
final class FunctionBackend implements Backend {
    private final TensorFunction function;
    private final BackendTraits traits;

    FunctionBackend(TensorFunction function) {
        this.function = function;
        traits = BackendTraits.DEFAULT.withExecution(function.execution()).withParallelInstances();
    }

    @Override
    public BackendTraits traits() {
        return traits;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) {
        return FunctionCompletion.of(function, function.completion(), context.settings());
    }

    @Override
    public Model load(ModelContext context) {
        complete(context); // for its checks, also where the server completes nothing
        if (context.settings().decoupled()) {
            throw decoupled(function, context);
        }
        return instance -> batch -> {
            for (InferenceRequest request : batch.requests()) {
                apply(request, context);
            }
        };
    }

    private void apply(InferenceRequest request, ModelContext context) {
        try {
            function.apply(request, context);
        } catch (RuntimeException e) {
            request.fail(failure(function, context, e));
        }
    }

    /** Returns the error for a decoupled model, which a function cannot serve. */
    static BackendException decoupled(BackendProvider function, ModelContext context) {
        return new BackendException(
                ErrorCode.UNSUPPORTED,
                "model '" + context.settings().name() + "': backend '" + function.name()
                        + "' gives one response to each request, but the model configuration says decoupled");
    }

    /** Returns the error for what a function threw; an unexpected one is logged. */
    static BackendException failure(BackendProvider function, ModelContext context, Throwable thrown) {
        if (thrown instanceof BackendException expected) {
            return expected;
        }
        context.logger().log(Level.ERROR, "backend failed", thrown);
        return new BackendException(
                ErrorCode.INTERNAL,
                "model '" + context.settings().name() + "': backend '" + function.name() + "' failed: " + thrown,
                thrown);
    }
}
