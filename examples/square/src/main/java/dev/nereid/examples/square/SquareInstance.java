package dev.nereid.examples.square;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.function.LongSupplier;

/**
 * Sends n responses with the value n, then the end of the responses. Sends only the end if n is 0 or less. A model that is
 * not decoupled sends one response. Confined to the instance's thread.
 */
final class SquareInstance implements ModelInstance {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final SquareModel model;
    private final SimulatedResponses simulated;

    SquareInstance(SquareModel model, LongSupplier nanoTime) {
        this.model = model;
        this.simulated = new SimulatedResponses(model, nanoTime);
    }

    @Override
    public void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            try {
                if (model.decoupled()) {
                    respond(request);
                } else {
                    respondOnce(request);
                }
            } catch (BackendException e) {
                fail(request, e);
            } catch (RuntimeException | Error e) {
                // The sender must be ended in every case: no other code does.
                fail(request, new BackendException(ErrorCode.INTERNAL, "square failed: " + e, e));
                throw e;
            }
        }
    }

    private void fail(InferenceRequest request, BackendException error) {
        if (model.decoupled()) {
            request.sender().fail(error);
        } else {
            request.fail(error);
        }
    }

    private void respond(InferenceRequest request) {
        Tensor in = input(request);
        int number = in.data().get(INT, 0);
        Shape shape = in.shape();
        ResponseSender sender = request.sender();
        if (model.simulates()) {
            simulated.send(sender, number, () -> response(sender, shape, number));
        } else {
            // A disconnected client needs no more responses: there may be two billion of them.
            for (int i = 0; i < number && !sender.isCancelled(); i++) {
                sender.send(response(sender, shape, number));
            }
        }
        sender.complete();
    }

    private void respondOnce(InferenceRequest request) {
        Tensor in = input(request);
        int number = in.data().get(INT, 0);
        if (number <= 0) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "expected a single response, got 0 (expected: IN of 1 or more, or decoupled: true)");
        }
        write(request.response(), in.shape(), number);
    }

    private static InferenceResponse response(ResponseSender sender, Shape shape, int number) {
        InferenceResponse response = sender.newResponse();
        try {
            write(response, shape, number);
            return response;
        } catch (RuntimeException | Error e) {
            response.discard();
            throw e;
        }
    }

    private static void write(InferenceResponse response, Shape shape, int number) {
        response.allocate(SquareBackend.OUT, DataType.INT32, shape).data().set(INT, 0, number);
    }

    /** Returns the input, which has the shape of the output: one element, in a batch of one. */
    private static Tensor input(InferenceRequest request) {
        Tensor in = request.input(SquareBackend.IN)
                .orElseThrow(() -> new BackendException(ErrorCode.INVALID_ARGUMENT, "input 'IN': missing"));
        if (in.shape().elementCount() != 1) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "unexpected shape for IN input: " + in.shape() + " (expected: one element)");
        }
        return in;
    }
}
