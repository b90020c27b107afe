package dev.nereid.backend.python.frame;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A completed configuration, as the frame COMPLETED has it. Immutable; the values are not checked, only their form.
 *
 * @param maxBatchSize {@code max_batch_size}
 * @param decoupled the transaction policy; empty if the configuration has none
 * @param scheduling the scheduling that is chosen, such as {@code dynamic_batching}; empty for none
 */
public record CompletedFrame(
        long maxBatchSize,
        Optional<Boolean> decoupled,
        String scheduling,
        List<Tensor> inputs,
        List<Tensor> outputs,
        String json) {
    private static final int NOT_SET = 0;
    private static final int FALSE = 1;
    private static final int TRUE = 2;

    /** The least size of a tensor: two lengths, a flag and a count. */
    private static final int TENSOR = 4 * Integer.BYTES;

    private static final int MAX_RANK = 255;

    public CompletedFrame {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
    }

    /** A configured tensor, of a type such as {@code TYPE_FP32}; requests may omit an optional one. Immutable. */
    public record Tensor(String name, String dataType, boolean optional, List<Long> dims) {
        public Tensor {
            dims = List.copyOf(dims);
        }
    }

    /** Reads COMPLETED from its first field on; throws {@link FrameException} if the frame does not have its form. */
    public static CompletedFrame read(FrameReader frame) {
        long maxBatchSize = frame.u64("max_batch_size");
        int policy = frame.i32("decoupled");
        if (policy < NOT_SET || policy > TRUE) {
            throw new FrameException("decoupled: " + policy + " (expected: 0, 1 or 2)");
        }
        return new CompletedFrame(
                maxBatchSize,
                policy == NOT_SET ? Optional.empty() : Optional.of(policy != FALSE),
                frame.text("scheduling"),
                tensors(frame, "inputs"),
                tensors(frame, "outputs"),
                frame.text("configuration"));
    }

    private static List<Tensor> tensors(FrameReader frame, String field) {
        int count = frame.entries(field, TENSOR);
        if (count > FrameType.MAX_COUNT) {
            throw new FrameException(field + ": " + count + " (expected: at most " + FrameType.MAX_COUNT + ")");
        }
        List<Tensor> tensors = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            String name = frame.text("name of a tensor");
            String dataType = frame.text("data type of a tensor");
            boolean optional = frame.i32("optional") != 0;
            int rank = frame.entries("dims", Long.BYTES);
            if (rank > MAX_RANK) {
                throw new FrameException("dims: " + rank + " (expected: at most " + MAX_RANK + ")");
            }
            List<Long> dims = new ArrayList<>(rank);
            for (int dim = 0; dim < rank; dim++) {
                dims.add(frame.u64("dims"));
            }
            tensors.add(new Tensor(name, dataType, optional, dims));
        }
        return tensors;
    }
}
