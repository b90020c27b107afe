package dev.nereid.spi;

import java.lang.System.Logger.Level;

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
    public Model load(ModelContext context) throws BackendException {
        if (context.settings().decoupled()) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED,
                    "model '" + context.settings().name() + "': backend '" + function.name()
                            + "' gives one response to each request, but the model configuration says decoupled");
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
        } catch (BackendException e) {
            request.fail(e);
        } catch (RuntimeException e) {
            context.logger().log(Level.ERROR, "backend failed", e);
            request.fail(new BackendException(
                    ErrorCode.INTERNAL,
                    "model '" + context.settings().name() + "': backend '" + function.name() + "' failed: " + e,
                    e));
        }
    }
}
