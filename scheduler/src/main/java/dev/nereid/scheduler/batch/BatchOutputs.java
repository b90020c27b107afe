package dev.nereid.scheduler.batch;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.memory.ByteStrings;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.OutputReceiver;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Fence;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Splits the outputs of a batch among its requests. Confined to the execution.
 *
 * <p>The batch holds a reference to the memory until its execution is finished; each response with a part of it holds
 * another.
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

    /** Allocates a checked output; in ordinary memory if no pinned memory is left. */
    Tensor allocate(OutputSpec output, DataType type, Shape shape, MemoryPlace place) {
        TensorBuffer buffer = OutputChecks.allocate(scope.model(), output, type, shape, place);
        MemoryPlace actual = place.isHost() ? buffer.place() : place;
        return add(output, Tensor.of(type, shape, buffer.segment(), actual), buffer);
    }

    Tensor allocateBytes(OutputSpec output, Shape shape, long byteSize) {
        TensorBuffer buffer = OutputChecks.allocateBytes(scope.model(), output, shape, byteSize);
        return add(output, Tensor.of(DataType.BYTES, shape, buffer.segment()), buffer);
    }

    private Tensor add(OutputSpec output, Tensor tensor, TensorBuffer buffer) {
        add(output, tensor, ReferenceCountedMemory.of(buffer));
        return tensor;
    }

    /** Adds a checked output. Takes over a reference to its memory, even if it throws. */
    void add(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) {
        boolean isAdded = false;
        try {
            if (output.source() == null) {
                OutputChecks.forClient(scope.model(), output, tensor);
            }
            outputs.add(new Whole(output, tensor, memory));
            isAdded = true;
        } finally {
            if (!isAdded) {
                memory.release();
            }
        }
    }

    /** Adds the fence of a pending output, which was added before. */
    void fence(String output, Fence fence, OutputReceiver execution) {
        for (Whole whole : outputs.reversed()) { // the last one of unknown outputs with one name
            if (whole.output().tensor().name().equals(output)) {
                whole.tensor = execution.received(whole.tensor().withFence(fence), whole.memory());
                return;
            }
        }
        throw OutputChecks.notAllocated(scope.model(), output);
    }

    boolean mayBePending(ScheduledRequest request) {
        for (Whole whole : outputs) {
            if (!OutputPlacement.mayBePending(
                    request.checked(), whole.output().tensor().name(), whole.tensor())) {
                return false;
            }
        }
        return true;
    }

    /** Throws if an output cannot be added. */
    OutputSpec check(String output, DataType type, Shape shape) {
        OutputSpec spec = scope.output(output, type, shape);
        if (!spec.isKnown()) {
            return spec; // never part of a response
        }
        if (has(output)) {
            throw SchedulerErrors.duplicateOutput(scope.model().settings(), output);
        }
        String source = spec.source();
        if (source == null) {
            OutputChecks.checkItems(scope.model(), spec, shape, items);
        } else {
            ScatteredParts.check(scope.model(), spec, source, requests, shape);
        }
        return spec;
    }

    /** Retains the memory of an output in which a tensor lies; {@code null} if it lies in none. */
    @Nullable
    ReferenceCountedMemory retain(Tensor tensor) {
        for (Whole whole : outputs) {
            if (whole.tensor().data().asOverlappingSlice(tensor.data()).isPresent()) {
                whole.memory().retain();
                return whole.memory();
            }
        }
        return null;
    }

    boolean has(String output) {
        for (Whole whole : outputs) {
            if (whole.output().tensor().name().equals(output)) {
                return true;
            }
        }
        return false;
    }

    /** Adds the parts of one request to its response, for each requested output. */
    void putParts(int index, int firstItem, ResponseBuilder response) {
        ScheduledRequest request = requests.get(index);
        for (Whole whole : outputs) {
            String name = whole.output().tensor().name();
            if (request.checked().requestsOutput(name)) {
                MemoryPlace place = whole.tensor().place();
                if (!place.isHost() && !request.checked().takesOutput(name, place)) {
                    moveToHost(whole);
                }
                Tensor part = part(whole, index, firstItem);
                whole.memory().retain();
                response.putPart(whole.output(), part, whole.memory());
            }
        }
    }

    /** Moves an output out of memory of a device, once for all requests. */
    private void moveToHost(Whole whole) {
        Tensor moved = whole.tensor();
        TensorBuffer copy =
                OutputChecks.copyToHost(scope.model(), whole.output().tensor().name(), moved);
        whole.moved(Tensor.of(moved.type(), moved.shape(), copy.segment()), ReferenceCountedMemory.of(copy));
    }

    void release() {
        for (Whole whole : outputs) {
            DeviceCopies.releaseUnlessPending(whole.tensor(), whole.memory());
        }
        outputs.clear();
    }

    private Tensor part(Whole whole, int index, int firstItem) {
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
        Tensor part = Tensor.of(whole.type(), shape, whole.data().asSlice(start, end - start), whole.place());
        return whole.fence().map(part::withFence).orElse(part);
    }

    /** Returns the offset of the part of each request, in bytes. */
    private long[] partOffsets(Whole whole, String source) {
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

    /** Returns the offset of each item, in bytes. */
    private long[] itemOffsets(Whole whole) {
        long[] offsets = whole.offsets;
        if (offsets == null) {
            offsets = framed(whole, ByteStrings.offsets(whole.tensor(), items));
            whole.offsets = offsets;
        }
        return offsets;
    }

    private long[] framed(Whole whole, long @Nullable [] offsets) {
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
        private Tensor tensor;
        private ReferenceCountedMemory memory;

        /** The offsets of items or parts, computed for the first part, since only then the content is complete. */
        private long @Nullable [] offsets;

        Whole(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) {
            this.output = output;
            this.tensor = tensor;
            this.memory = memory;
        }

        /** Replaces tensor and memory; releases the reference to the memory so far. */
        void moved(Tensor changed, ReferenceCountedMemory owner) {
            memory.release();
            tensor = changed;
            memory = owner;
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
