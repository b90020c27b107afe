package dev.nereid.spi;

/** The backend around a {@link TensorFunction}. Immutable. */
final class FunctionBackend implements Backend {
    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.SHORT).withParallelInstances();

    private final TensorFunction function;

    FunctionBackend(TensorFunction function) {
        this.function = function;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        ModelSettings settings = context.settings();
        ModelInstance instance = batch -> apply(batch, settings);
        return ignored -> instance;
    }

    private void apply(Batch batch, ModelSettings settings) {
        for (InferenceRequest request : batch.requests()) {
            try {
                function.apply(request, settings);
            } catch (BackendException e) {
                request.fail(e);
            }
        }
    }
}
