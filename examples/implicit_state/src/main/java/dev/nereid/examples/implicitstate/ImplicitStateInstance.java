package dev.nereid.examples.implicitstate;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Uses the state of each sequence as {@code TEST_CASE} of the request says. Keeps nothing: the server keeps the states.
 * Confined to the instance's thread.
 */
final class ImplicitStateInstance implements ModelInstance {
    /** Bytes by which a growable state grows with each request. */
    static final int BLOCK = 1024 * 1024;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final boolean batches;
    private final boolean growable;

    /**
     * Creates an instance.
     *
     * @param batches whether tensors have a batch dimension
     */
    ImplicitStateInstance(boolean batches, boolean growable) {
        this.batches = batches;
        this.growable = growable;
    }

    @Override
    public void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            if (!request.isNullRequest()) {
                try {
                    run(request);
                } catch (BackendException e) {
                    request.fail(e);
                }
            }
        }
    }

    private void run(InferenceRequest request) {
        int testCase = number(request, ImplicitStateBackend.TEST_CASE);
        switch (testCase) {
            case 0 -> request.state("undefined_state"); // fails: there is no such state
            case 1 -> readState(request);
            case 2 -> passStateOn(request);
            case 3 -> growState(request);
            default ->
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT, "input 'TEST_CASE': " + testCase + " (expected: 0 to 3)");
        }
    }

    /** Responds with the sum of input and state. The state gets no new value, and stays. */
    private void readState(InferenceRequest request) {
        int sum = number(request, ImplicitStateBackend.INPUT) + number(request, ImplicitStateBackend.INPUT_STATE);
        request.state(ImplicitStateBackend.OUTPUT_STATE);
        Tensor output = request.response().allocate(ImplicitStateBackend.OUTPUT, DataType.INT32, shape(1));
        output.data().set(INT, 0, sum);
    }

    /** Allocates the next value of a state with one buffer, and writes nothing. Responds without outputs. */
    private void passStateOn(InferenceRequest request) {
        Tensor present = request.requireInput(ImplicitStateBackend.INPUT_STATE);
        Tensor next = request.state(ImplicitStateBackend.OUTPUT_STATE).allocate(DataType.INT32, shape(1));
        checkOneBuffer(present.data(), next.data());
    }

    /** Adds a block to a growable state, which has the number of the request in each byte. Responds with the state. */
    private void growState(InferenceRequest request) {
        if (!growable) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED,
                    "state 'OUTPUT_STATE': its memory does not grow (expected: use_growable_memory: true)");
        }
        Tensor present = request.requireInput(ImplicitStateBackend.INPUT_STATE);
        boolean first = request.sequence().map(Sequence::start).orElse(true);
        long blocks = first ? 0 : present.byteSize() / BLOCK;
        Shape shape = shape((blocks + 1) * BLOCK);
        Tensor next = request.state(ImplicitStateBackend.OUTPUT_STATE).allocate(DataType.INT8, shape);
        checkOneBuffer(present.data().asSlice(0, blocks * BLOCK), next.data());
        next.data().asSlice(blocks * BLOCK, BLOCK).fill((byte) blocks);
        Tensor output = request.response().allocate(ImplicitStateBackend.OUTPUT_STATE, DataType.INT8, shape);
        output.data().copyFrom(next.data());
    }

    /** Checks that the memory of the next value begins with the present one. */
    private static void checkOneBuffer(MemorySegment present, MemorySegment next) {
        if (next.byteSize() < present.byteSize()
                || next.asSlice(0, present.byteSize()).mismatch(present) >= 0) {
            throw new BackendException(ErrorCode.UNSUPPORTED, "Input and output state are using different buffers.");
        }
    }

    private Shape shape(long elements) {
        return batches ? Shape.of(1, elements) : Shape.of(elements);
    }

    private static int number(InferenceRequest request, String input) {
        Tensor tensor = request.requireInput(input);
        if (tensor.type() != DataType.INT32 || tensor.shape().elementCount() != 1) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "input '" + input + "': " + tensor.type() + " " + tensor.shape() + " (expected: one INT32)");
        }
        return tensor.data().get(INT, 0);
    }
}
