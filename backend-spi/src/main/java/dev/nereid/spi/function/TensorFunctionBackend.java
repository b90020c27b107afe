package dev.nereid.spi.function;

import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;

/** The backend around a {@link TensorFunction}. Immutable. */
final class TensorFunctionBackend extends FunctionBackend<TensorFunction> {
    TensorFunctionBackend(TensorFunction function) {
        super(function, BackendTraits.DEFAULT, false, function::open);
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
