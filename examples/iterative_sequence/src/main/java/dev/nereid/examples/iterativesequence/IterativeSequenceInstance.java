package dev.nereid.examples.iterativesequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Counts down from the input of each request: sends the number of responses that are left, and has the request executed
 * again until none is. Confined to the instance's thread.
 */
final class IterativeSequenceInstance implements ModelInstance {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final CountdownModel model;
    private final LongSupplier nanoTime;

    /** The responses that are left, by sequence. */
    private final Map<Sequence.Id, Integer> left = new HashMap<>();

    IterativeSequenceInstance(CountdownModel model, LongSupplier nanoTime) {
        this.model = model;
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) {
        if (model.delayNanos() > 0) {
            await(model.delayNanos());
        }
        for (InferenceRequest request : batch.requests()) {
            if (!request.isNullRequest()) {
                try {
                    count(request);
                } catch (BackendException e) {
                    request.fail(e);
                } catch (RuntimeException | Error e) {
                    // Ended here in every case: a request with a sender is not completed by the end of the execution.
                    request.fail(new BackendException(ErrorCode.INTERNAL, "iterative_sequence failed: " + e, e));
                    throw e;
                }
            }
        }
    }

    private void count(InferenceRequest request) {
        int next = (int) Math.max(Integer.MIN_VALUE, present(request) - 1L);
        if (next > 0 && !model.iterative()) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not"
                            + " configured to handle such a flag. (expected: sequence_batching with"
                            + " iterative_sequence: true)");
        }
        respond(request, next);
        if (next > 0) {
            request.sequence().ifPresent(sequence -> left.put(sequence.id(), next));
        } else {
            request.sequence().ifPresent(sequence -> left.remove(sequence.id()));
        }
    }

    /** Returns the number of responses before this execution: the input, unless the request was executed before. */
    private int present(InferenceRequest request) {
        Sequence sequence = request.sequence().orElse(null);
        Integer counted = sequence == null || sequence.start() ? null : left.get(sequence.id());
        if (counted != null) {
            return counted;
        }
        Tensor input = request.requireInput(IterativeSequenceBackend.INPUT);
        if (input.shape().elementCount() != 1) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "input 'INPUT': shape " + input.shape() + " (expected: one element)");
        }
        return input.data().get(INT, 0);
    }

    private void respond(InferenceRequest request, int number) {
        if (!model.decoupled()) {
            if (number > 0) {
                request.reschedule();
            } else {
                write(request.response(), number);
            }
            return;
        }
        ResponseSender sender = request.sender();
        InferenceResponse response = response(sender, number);
        if (number > 0) {
            sender.send(response);
            request.reschedule();
        } else {
            sender.complete(response);
        }
    }

    private InferenceResponse response(ResponseSender sender, int number) {
        InferenceResponse response = sender.newResponse();
        try {
            write(response, number);
            return response;
        } catch (RuntimeException | Error e) {
            response.discard();
            throw e;
        }
    }

    private void write(InferenceResponse response, int number) {
        Shape shape = model.batches() ? Shape.of(1, 1) : Shape.of(1);
        response.allocate(IterativeSequenceBackend.OUTPUT, DataType.INT32, shape)
                .data()
                .set(INT, 0, number);
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        left.remove(id);
    }

    /** Simulates a model that computes: waits, unless the thread is interrupted. */
    private void await(long nanos) {
        long end = nanoTime.getAsLong() + nanos;
        for (long remaining = nanos; remaining > 0; remaining = end - nanoTime.getAsLong()) {
            if (Thread.currentThread().isInterrupted()) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "execution was interrupted");
            }
            LockSupport.parkNanos(this, remaining);
        }
    }
}
