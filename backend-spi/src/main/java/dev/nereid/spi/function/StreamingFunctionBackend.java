package dev.nereid.spi.function;

import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ResponseSender;

/** The backend around a {@link StreamingFunction}. Immutable. */
final class StreamingFunctionBackend extends FunctionBackend<StreamingFunction> {
    StreamingFunctionBackend(StreamingFunction function) {
        super(function, BackendTraits.DEFAULT, true, function::open);
    }

    @Override
    ModelInstance instance(StreamingFunction opened, ModelContext context) {
        return batch -> {
            for (InferenceRequest request : batch.requests()) {
                apply(opened, request, context);
            }
        };
    }

    private void apply(StreamingFunction opened, InferenceRequest request, ModelContext context) {
        ResponseSender sender = request.sender();
        try {
            opened.apply(request, sender);
            sender.complete(); // does nothing if the function has ended it
        } catch (Exception e) { // also a checked one of another language
            sender.fail(failure(context, e));
        } catch (Error e) { // the server fails the requests that were not begun, but not one with a sender
            sender.fail(failure(context, e));
            throw e;
        }
    }
}
