package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ReferenceCountedMemory;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Splits the outputs of a batch among its requests. Confined to the execution.
 *
 * <p>The batch is a user of the memory until its execution is finished; each response with a part of it is another.
 */
final class BatchOutputs {
    private final ExecutionScope scope;
    private final List<ScheduledRequest> requests;
    private final int items;
    private final List<Whole> outputs = new ArrayList<>(2);

    BatchOutputs(ExecutionScope scope, List<ScheduledRequest> requests, int items) {
        this.scope = scope;
        this.requests = requests;
        this.items = items;
    }

    /** Adds an output that was checked; takes over the use of its memory, also when it throws. */
    void add(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) throws BackendException {
        try {
            if (output.source() == null) {
                OutputChecks.forClient(scope.model(), output, tensor);
            }
            outputs.add(new Whole(output, tensor, memory));
        } catch (BackendException | RuntimeException | Error e) {
            memory.release();
            throw e;
        }
    }

    /** Fails if an output cannot be added. */
    OutputSpec check(String output, DataType type, Shape shape) throws BackendException {
        OutputSpec spec = scope.output(output);
        if (has(output)) {
            throw SchedulerErrors.duplicateOutput(scope.model().settings(), output);
        }
        OutputChecks.checkType(scope.model(), spec, type);
        String source = spec.source();
        if (source == null) {
            OutputChecks.checkItems(scope.model(), spec, shape, items);
        } else {
            ScatteredParts.check(scope.model(), spec, source, requests, shape);
        }
        return spec;
    }

    /** Says whether an output was added. */
    boolean has(String output) {
        for (Whole whole : outputs) {
            if (whole.output().tensor().name().equals(output)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Puts the parts of one request into its response: its own of each output that it wants.
     *
     * @param index the place of the request among the requests
     * @param firstItem the place of its first item among the items
     */
    void putParts(int index, int firstItem, ResponseBuilder draft) throws BackendException {
        ScheduledRequest request = requests.get(index);
        for (Whole whole : outputs) {
            if (request.checked().requestsOutput(whole.output().tensor().name())) {
                Tensor part = part(whole, index, firstItem);
                whole.memory().retain();
                draft.putPart(whole.output(), part, whole.memory());
            }
        }
    }

    /** Ends the use by the batch. */
    void release() {
        for (Whole whole : outputs) {
            whole.memory().release();
        }
        outputs.clear();
    }

    private Tensor part(Whole whole, int index, int firstItem) throws BackendException {
        Tensor tensor = whole.tensor();
        String source = whole.output().source();
        if (source != null) {
            long[] offsets = partOffsets(whole, source);
            Shape shape = ScatteredParts.shape(scope.model(), whole.output(), source, requests.get(index));
            return slice(tensor, shape, offsets[index], offsets[index + 1]);
        }
        if (!whole.output().batched()) {
            return tensor;
        }
        int count = requests.get(index).checked().batchSize();
        Shape shape = tensor.shape().withFirst(count);
        if (tensor.type().isFixedSize()) {
            long itemSize = tensor.byteSize() / items;
            return slice(tensor, shape, firstItem * itemSize, (firstItem + (long) count) * itemSize);
        }
        long[] offsets = itemOffsets(whole);
        return slice(tensor, shape, offsets[firstItem], offsets[firstItem + count]);
    }

    private static Tensor slice(Tensor whole, Shape shape, long start, long end) {
        return Tensor.of(whole.type(), shape, whole.data().asSlice(start, end - start), whole.place());
    }

    /** Returns where the part of each request begins, in bytes. */
    private long[] partOffsets(Whole whole, String source) throws BackendException {
        long[] offsets = whole.offsets;
        if (offsets == null) {
            offsets = ScatteredParts.offsets(scope.model(), whole.output(), source, requests);
            DataType type = whole.tensor().type();
            if (type.isFixedSize()) {
                for (int i = 0; i < offsets.length; i++) {
                    offsets[i] *= type.byteSize();
                }
            } else {
                offsets = framed(whole, ByteStrings.offsets(whole.tensor(), offsets));
            }
            whole.offsets = offsets;
        }
        return offsets;
    }

    /** Returns where each item begins, in bytes. */
    private long[] itemOffsets(Whole whole) throws BackendException {
        long[] offsets = whole.offsets;
        if (offsets == null) {
            offsets = framed(whole, ByteStrings.offsets(whole.tensor(), items));
            whole.offsets = offsets;
        }
        return offsets;
    }

    private long[] framed(Whole whole, long @Nullable [] offsets) throws BackendException {
        if (offsets == null) {
            throw SchedulerErrors.output(
                    scope.model().settings(),
                    whole.output().tensor().name(),
                    whole.tensor().byteSize() + " bytes (expected: "
                            + whole.tensor().shape() + " byte strings, each with its length in front)");
        }
        return offsets;
    }

    /** An output of the whole batch and its memory. */
    private static final class Whole {
        private final OutputSpec output;
        private final Tensor tensor;
        private final ReferenceCountedMemory memory;

        /**
         * Where items or parts begin; found when the first part is cut, since only then the content is there for sure.
         */
        private long @Nullable [] offsets;

        Whole(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) {
            this.output = output;
            this.tensor = tensor;
            this.memory = memory;
        }

        OutputSpec output() {
            return output;
        }

        Tensor tensor() {
            return tensor;
        }

        ReferenceCountedMemory memory() {
            return memory;
        }
    }
}
