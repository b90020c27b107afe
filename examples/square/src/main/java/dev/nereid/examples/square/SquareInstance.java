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

/**
 * Sends n responses with the value n, then the end of the responses. Sends only the end if n is 0 or less. Confined to
 * the instance's thread.
 */
final class SquareInstance implements ModelInstance {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final Shape ONE = Shape.of(1);

    @Override
    public void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            try {
                respond(request);
            } catch (BackendException e) {
                request.sender().fail(e);
            } catch (RuntimeException | Error e) {
                // The sender must be ended in every case: no other code does.
                request.sender().fail(new BackendException(ErrorCode.INTERNAL, "square failed: " + e, e));
                throw e;
            }
        }
    }

    private static void respond(InferenceRequest request) throws BackendException {
        int number = number(request);
        ResponseSender sender = request.sender();
        // A disconnected client needs no more responses: there may be two billion of them.
        for (int i = 0; i < number && !sender.isCancelled(); i++) {
            sender.send(response(sender, number));
        }
        sender.complete();
    }

    private static InferenceResponse response(ResponseSender sender, int number) throws BackendException {
        InferenceResponse response = sender.newResponse();
        try {
            Tensor out = response.allocate(SquareBackend.OUT, DataType.INT32, ONE);
            out.data().set(INT, 0, number);
            return response;
        } catch (BackendException | RuntimeException | Error e) {
            response.discard();
            throw e;
        }
    }

    private static int number(InferenceRequest request) throws BackendException {
        Tensor in = request.input(SquareBackend.IN)
                .orElseThrow(() -> new BackendException(ErrorCode.INVALID_ARGUMENT, "input 'IN': missing"));
        if (in.shape().elementCount() != 1) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "input 'IN': shape " + in.shape() + " (expected: one element)");
        }
        return in.data().get(INT, 0);
    }
}
