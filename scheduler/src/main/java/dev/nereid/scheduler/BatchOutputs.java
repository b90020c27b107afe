package dev.nereid.scheduler;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The outputs of a batch of several requests, to be cut into one part for each. Confined to the execution.
 *
 * <p>The batch is a user of the memory until its execution is finished; each response with a part of it is another.
 */
final class BatchOutputs {
    private final ModelScope model;
    private final int items;
    private final List<Whole> outputs = new ArrayList<>(2);

    BatchOutputs(ModelScope model, int items) {
        this.model = model;
        this.items = items;
    }

    /** Adds an output that was checked; takes over the use of its memory, also when it throws. */
    void add(OutputSpec output, Tensor tensor, CountedMemory memory) throws BackendException {
        try {
            OutputChecks.forClient(model, output, tensor);
            outputs.add(new Whole(output, tensor, memory));
        } catch (BackendException | RuntimeException | Error e) {
            memory.release();
            throw e;
        }
    }

    /** Fails if an output cannot be added. */
    OutputSpec check(String output, DataType type, Shape shape) throws BackendException {
        OutputSpec spec = model.output(output);
        if (has(output)) {
            throw SchedulerErrors.twice(model.settings(), output);
        }
        OutputChecks.checkType(model, spec, type);
        OutputChecks.checkItems(model, spec, shape, items);
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

    /** Puts the parts of one request into its response: of each output that it wants, its own items. */
    void putParts(ScheduledRequest request, int firstItem, ResponseDraft draft) throws BackendException {
        for (Whole whole : outputs) {
            if (request.wants(whole.output().tensor().name())) {
                Tensor part = part(whole, firstItem, request.call().batchSize());
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

    private Tensor part(Whole whole, int firstItem, int count) throws BackendException {
        Tensor tensor = whole.tensor();
        if (!whole.output().batched()) {
            return tensor;
        }
        long start;
        long end;
        if (tensor.type().isFixedSize()) {
            long itemSize = tensor.byteSize() / items;
            start = firstItem * itemSize;
            end = start + count * itemSize;
        } else {
            long[] offsets = offsets(whole);
            start = offsets[firstItem];
            end = offsets[firstItem + count];
        }
        MemorySegment data = tensor.data().asSlice(start, end - start);
        return Tensor.of(tensor.type(), tensor.shape().withFirst(count), data, tensor.place());
    }

    private long[] offsets(Whole whole) throws BackendException {
        long[] offsets = whole.offsets;
        if (offsets == null) {
            offsets = ByteStrings.offsets(whole.tensor, items);
            if (offsets == null) {
                throw SchedulerErrors.output(
                        model.settings(),
                        whole.output().tensor().name(),
                        whole.tensor.byteSize() + " bytes (expected: " + whole.tensor.shape()
                                + " byte strings, each with its length in front)");
            }
            whole.offsets = offsets;
        }
        return offsets;
    }

    /** An output of the whole batch, and what it lies in. */
    private static final class Whole {
        private final OutputSpec output;
        private final Tensor tensor;
        private final CountedMemory memory;

        /** Where the items begin; found when the first part is cut, since only then the content is there for sure. */
        private long @Nullable [] offsets;

        Whole(OutputSpec output, Tensor tensor, CountedMemory memory) {
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

        CountedMemory memory() {
            return memory;
        }
    }
}
