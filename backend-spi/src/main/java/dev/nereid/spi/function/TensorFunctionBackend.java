package dev.nereid.spi.function;

import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;

/** The backend around a {@link TensorFunction}. Immutable. */
final class TensorFunctionBackend extends FunctionBackend<TensorFunction> {
    private final TensorFunction function;

    TensorFunctionBackend(TensorFunction function) {
        super(function, BackendTraits.DEFAULT.withExecution(function.execution()));
        this.function = function;
    }

    @Override
    ModelCompletion completion(ModelContext context) {
        return function.completion(context);
    }

    @Override
    boolean isDecoupled() {
        return false;
    }

    @Override
    TensorFunction open(ModelContext context) {
        return function.open(context);
    }

    @Override
    void close(TensorFunction opened) {
        opened.close();
    }

    @Override
    ModelInstance instance(TensorFunction opened, ModelContext context) {
        return batch -> {
            for (InferenceRequest request : batch.requests()) {
                apply(opened, request, context);
            }
        };
    }

    private void apply(TensorFunction opened, InferenceRequest request, ModelContext context) {
        try {
            opened.apply(request, context);
        } catch (Exception e) { // also a checked one of another language
            request.fail(failure(context, e));
        }
    }
}
