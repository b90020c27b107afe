package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Sequence;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The fields of a frame CALL. Valid as long as the frame; holds the slots of its inputs until they are released. Confined to the
 * thread that reads the frame.
 *
 * @param isStream whether the caller takes any number of responses
 * @param execution the execution that makes the call, or 0
 * @param sequence the position in a sequence; empty without an id of one
 * @param timeoutMicros how long the request may wait in the queue, 0 for the default
 * @param version the version, or -1 for any
 * @param window the responses that may be sent before more are allowed
 * @param model the name of the other model
 * @param requestId the id of the request; may be empty
 * @param outputs the names of the requested outputs; empty for all
 * @param parameters values that are texts, integers or truth values
 * @param inputs the inputs in the order of the frame
 */
record CallFrame(
        long id,
        boolean isStream,
        long execution,
        Optional<Sequence> sequence,
        long timeoutMicros,
        long version,
        long window,
        String model,
        String requestId,
        List<String> outputs,
        Map<String, Object> parameters,
        List<Input> inputs) {
    private static final int DECOUPLED = 1;
    private static final int START = 1;
    private static final int END = 2;

    /** An input. Confined to the reading thread until the request is sent, but for the release. */
    static final class Input {
        private final String name;
        private final FrameTensor tensor;
        private final MemorySegment data;
        private final AtomicReference<TensorMemory.@Nullable Held> slot;

        /** Creates an input; the slot with its elements is {@code null} for an input within the frame. */
        Input(String name, FrameTensor tensor, TensorMemory.@Nullable Held slot) {
            this.name = name;
            this.tensor = tensor;
            data = slot == null ? tensor.data() : slot.data();
            this.slot = new AtomicReference<>(slot);
        }

        String name() {
            return name;
        }

        FrameTensor tensor() {
            return tensor;
        }

        /** Returns the elements: memory of the frame or of the slot. */
        MemorySegment data() {
            return data;
        }

        /** Returns whether the server may read the elements in place until {@link #release}: whatever they change to is valid. */
        boolean isInPlace() {
            return slot.get() != null && tensor.type() != DataType.BYTES;
        }

        /** Releases the slot, if there is one and it is not released. Called by any thread. */
        void release() {
            TensorMemory.Held held = slot.getAndSet(null);
            if (held != null) {
                held.release();
            }
        }
    }

    /**
     * Reads a frame from the first field behind its header, and holds the slots of its inputs.
     *
     * @throws FrameException if the frame is broken; then no slot is held
     */
    static CallFrame read(FrameReader frame, TensorMemory memory) {
        long execution = frame.u64("execution");
        long correlation = frame.u64("correlation id");
        long timeout = frame.u64("timeout");
        long version = frame.u64("version");
        int flags = frame.i32("flags of a call");
        long window = frame.u32("window");
        frame.i32("preferred device"); // all is on the host
        int inputs = frame.u16("number of inputs");
        int outputs = frame.u16("number of outputs");
        int parameters = frame.u16("number of parameters");
        frame.u8("preferred memory");
        frame.u8("kind of the correlation id"); // its text is empty where it is a number
        long modelSize = frame.u32("length of the model's name");
        long idSize = frame.u32("length of the request id");
        long correlationSize = frame.u32("length of the correlation id");
        long traceSize = frame.u32("length of the trace context");
        String model = frame.text("name of the model", modelSize);
        String requestId = frame.text("request id", idSize);
        String correlationText = frame.text("correlation id", correlationSize);
        frame.bytes("trace context", traceSize); // that of the causing execution counts
        List<String> names = new ArrayList<>();
        for (int i = 0; i < outputs; i++) {
            names.add(frame.text("name of an output"));
        }
        return new CallFrame(
                frame.id(),
                (frame.flags() & DECOUPLED) != 0,
                execution,
                sequence(correlation, correlationText, flags),
                timeout,
                version,
                window,
                model,
                requestId,
                names,
                frame.parameters(parameters),
                inputs(frame, inputs, memory));
    }

    private static Optional<Sequence> sequence(long number, String text, int flags) {
        boolean start = (flags & START) != 0;
        boolean end = (flags & END) != 0;
        if (!text.isEmpty()) {
            return Optional.of(Sequence.of(text, start, end));
        }
        return number == 0 ? Optional.empty() : Optional.of(Sequence.of(number, start, end));
    }

    private static List<Input> inputs(FrameReader frame, int count, TensorMemory memory) {
        List<Input> inputs = new ArrayList<>();
        boolean complete = false;
        try {
            for (int i = 0; i < count; i++) {
                FrameTensor tensor = frame.tensor("input of a call");
                String name = frame.text("name of an input", tensor.name());
                inputs.add(new Input(
                        name,
                        tensor,
                        tensor.segment() == 0 ? null : memory.hold(tensor, "input '" + name + "' of a call")));
            }
            complete = true;
            return inputs;
        } finally {
            if (!complete) {
                inputs.forEach(Input::release);
            }
        }
    }

    /** Returns the size of all inputs in bytes. */
    long inputBytes() {
        long bytes = 0;
        for (Input input : inputs) {
            bytes += input.data().byteSize();
        }
        return bytes;
    }

    /** Releases the slots of the inputs that are not released. */
    void release() {
        inputs.forEach(Input::release);
    }
}
