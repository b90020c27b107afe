package dev.nereid.backend.python.execute;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.frame.ParameterJson;
import dev.nereid.backend.python.memory.IncomingSlot;
import dev.nereid.backend.python.memory.SharedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes the frame EXECUTE. For one thread at a time. */
final class ExecuteEncoder {
    /** The largest tensor within a frame where shared memory is used up, in bytes. */
    private static final int MAX_INLINE = 64 << 20;

    private static final byte[] NOTHING = {};
    private static final int START = 1;
    private static final int END = 2;

    private final ModelTensors tensors;
    private final SharedMemory memory;
    private final int inlineLimit;
    private final int window;
    private final FrameWriter writer = new FrameWriter();
    private final List<IncomingSlot> slots = new ArrayList<>();

    ExecuteEncoder(ModelTensors tensors, SharedMemory memory, int inlineLimit, int window) {
        this.tensors = tensors;
        this.memory = memory;
        this.inlineLimit = inlineLimit;
        this.window = window;
    }

    /**
     * Writes the frame of an execution.
     *
     * @param id the number of the execution
     * @param first the handle of the first request; the other requests have the following handles
     * @param requests the requests; their tensors are copied
     * @throws InputMemoryException if there is no memory for an input; no shared memory is used then
     * @throws BackendException if it cannot be written; no shared memory is used then
     */
    void encode(long id, long first, List<InferenceRequest> requests) {
        slots.clear();
        try {
            writer.begin(FrameType.EXECUTE, 0, requests.size(), id);
            long handle = first;
            for (InferenceRequest request : requests) {
                request(handle++, request);
            }
            writer.end();
        } catch (RuntimeException | Error e) { // no frame names the slots
            slots.forEach(IncomingSlot::discard);
            throw e;
        }
    }

    /** Returns a writer with the frame, valid until the next call of {@link #encode}. */
    FrameWriter frame() {
        return writer;
    }

    private void request(long handle, InferenceRequest request) {
        long correlation = 0;
        byte[] correlationText = NOTHING;
        int flags = 0;
        Sequence sequence = request.sequence().orElse(null);
        if (sequence != null) {
            flags = (sequence.start() ? START : 0) | (sequence.end() ? END : 0);
            switch (sequence.id()) {
                case Sequence.Id.Numeric(long value) -> correlation = value;
                case Sequence.Id.Text(String value) -> correlationText = value.getBytes(UTF_8);
            }
        }
        byte[] id = request.id().isEmpty() ? NOTHING : request.id().getBytes(UTF_8);
        Map<String, Object> values = request.parameters().asMap();
        byte[] parameters =
                values.isEmpty() ? NOTHING : ParameterJson.of(values).getBytes(UTF_8);
        List<String> inputs = request.inputs();
        List<String> requested = request.requestedOutputs();
        boolean all = requested.size() == tensors.outputs().size();
        writer.u64(handle)
                .u64(correlation)
                .u64(request.timeoutMicros())
                .u32(window)
                .u16(flags)
                .u16(inputs.size())
                .u16(all ? 0 : requested.size())
                .u16(0)
                .u32(id.length)
                .u32(correlationText.length)
                .u32(parameters.length)
                .u32(0);
        if (!all) {
            requested.forEach(name -> writer.u16(index("output", name, tensors.outputIndex(name))));
        }
        writer.bytes(id).bytes(correlationText).bytes(parameters);
        for (String name : inputs) {
            input(request, index("input", name, tensors.inputIndex(name)), request.requireInput(name));
        }
    }

    private static int index(String what, String name, @Nullable Integer index) {
        if (index == null) {
            throw new BackendException(ErrorCode.INTERNAL, what + " '" + name + "': not one of the model's");
        }
        return index;
    }

    private void input(InferenceRequest request, int index, Tensor tensor) {
        long size = tensor.byteSize();
        IncomingSlot slot = size > Math.max(inlineLimit, 0) ? memory.allocate(size) : null;
        if (slot == null) {
            if (size > Math.max(inlineLimit, MAX_INLINE)) {
                throw new InputMemoryException(request, size);
            }
            writer.inlineTensor(index, tensor);
            return;
        }
        slots.add(slot);
        MemorySegment.copy(tensor.data(), 0, slot.data(), 0, size);
        slot.written();
        writer.sharedTensor(index, tensor.type(), tensor.shape(), slot.segment(), slot.offset(), size);
    }
}
