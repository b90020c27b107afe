package dev.nereid.testkit.contract;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;

/** A right backend, OUT = 2 × IN + MORE, whose instances may be replaced by faulty ones. Immutable. */
record Doubling(String name, Instances instances) implements BackendProvider {
    static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    /** Creates instances. */
    interface Instances {
        ModelInstance create(dev.nereid.spi.InstanceContext context);
    }

    static Doubling of(ModelInstance instance) {
        return new Doubling("doubling", context -> instance);
    }

    static Doubling right() {
        return of(batch -> {
            for (InferenceRequest request : batch.requests()) {
                apply(request);
            }
        });
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> place -> instances.create(place);
    }

    static void apply(InferenceRequest request) {
        if (request.isNullRequest()) {
            return;
        }
        try {
            respond(request, request.response(), 2);
        } catch (BackendException e) {
            request.fail(e);
        }
    }

    static void respond(InferenceRequest request, InferenceResponse response, float factor) {
        Tensor in = request.requireInput("IN");
        float more =
                request.input("MORE").map(tensor -> tensor.data().get(FLOAT, 0)).orElse(0f);
        Tensor out = response.allocate("OUT", DataType.FP32, in.shape());
        for (long at = 0; at < in.byteSize(); at += Float.BYTES) {
            float value = in.data().get(FLOAT, at);
            if (value < 0) {
                throw new BackendException(ErrorCode.INVALID_ARGUMENT, "IN: " + value + " (expected: >= 0)");
            }
            out.data().set(FLOAT, at, factor * value + more);
        }
    }

    /** Sends the result twice. */
    static void stream(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            ResponseSender sender = request.sender();
            try {
                for (int i = 0; i < 2; i++) {
                    InferenceResponse response = sender.newResponse();
                    boolean filled = false;
                    try {
                        respond(request, response, 2);
                        filled = true;
                    } finally {
                        if (!filled) {
                            response.discard();
                        }
                    }
                    sender.send(response);
                }
                sender.complete();
            } catch (BackendException e) {
                sender.fail(e);
            }
        }
    }

    /** Adds the input to a state. */
    static void accumulate(Batch batch, float factor) {
        for (InferenceRequest request : batch.requests()) {
            apply(request);
            if (!request.isNullRequest() && request.input("IN").isPresent()) {
                SequenceState state = request.state("SUM_OUT");
                float sum = request.requireInput("SUM_IN").data().get(FLOAT, 0);
                float value = request.requireInput("IN").data().get(FLOAT, 0);
                state.allocate(DataType.FP32, Shape.of(1, 1)).data().set(FLOAT, 0, sum + factor * value);
            }
        }
    }
}
