package dev.nereid.backend.python.execute;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameTensor;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.memory.HeldSlot;
import dev.nereid.backend.python.memory.SharedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Result of one request from a process: outputs, an error, or nothing yet. It holds the shared memory of its outputs
 * until they are put into a response, or {@link #release} is called.
 */
final class RequestResult {
    /** Kinds of results, by their numbers in frames. */
    enum Kind {
        NOTHING,
        OUTPUTS,
        ERROR,
        RESCHEDULE,
        UNUSED,
        FINAL
    }

    /** Texts in shared memory may change while they are read, so an element is checked where it was copied to. */
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(LITTLE_ENDIAN);

    private static final Kind[] KINDS = Kind.values();
    private static final ErrorCode[] CODES = ErrorCode.values();
    private static final int PYTHON_CODES = 8;

    private final Kind kind;
    private final boolean isFinal;
    private final List<Output> outputs;
    private final Map<String, Object> parameters;
    private final @Nullable BackendException error;

    private RequestResult(
            Kind kind,
            boolean isFinal,
            List<Output> outputs,
            Map<String, Object> parameters,
            @Nullable BackendException error) {
        this.kind = kind;
        this.isFinal = isFinal;
        this.outputs = outputs;
        this.parameters = parameters;
        this.error = error;
    }

    private record Output(
            String name, FrameTensor tensor, @Nullable HeldSlot slot) {
        void release() {
            if (slot != null) {
                slot.release();
            }
        }
    }

    /**
     * Reads a result, at which the frame is; outputs that lie in the frame are valid as long as it.
     *
     * @throws FrameException if the result is wrong; nothing is held then
     */
    static RequestResult read(FrameReader frame, List<String> names, SharedMemory memory) {
        int number = frame.u8("kind of a result");
        boolean isFinal = (frame.u8("flags of a result") & FrameType.FINAL) != 0;
        int count = frame.u16("outputs of a result");
        int parameterCount = frame.u16("parameters of a result");
        int code = frame.u16("code of a result");
        if (number >= KINDS.length || KINDS[number] == Kind.UNUSED) {
            throw new FrameException("kind of a result: " + number + " (expected: 0, 1, 2, 3 or 5)");
        }
        Kind kind = KINDS[number];
        if (kind == Kind.ERROR) {
            BackendException error = new BackendException(code(code), frame.text("error of a result"));
            return new RequestResult(kind, isFinal, List.of(), Map.of(), error);
        } else if (kind != Kind.OUTPUTS) {
            return new RequestResult(kind, isFinal || kind == Kind.FINAL, List.of(), Map.of(), null);
        }
        List<Output> outputs = new ArrayList<>(Math.min(count, names.size()));
        try {
            for (int i = 0; i < count; i++) {
                FrameTensor tensor = frame.tensor("output");
                if (tensor.name() >= names.size()) {
                    throw new FrameException(
                            "index of an output: " + tensor.name() + " (expected: below " + names.size() + ")");
                }
                HeldSlot slot = tensor.segment() == 0 ? null : memory.hold(tensor, "output");
                outputs.add(new Output(names.get(tensor.name()), tensor, slot));
            }
            return new RequestResult(kind, isFinal, outputs, frame.parameters(parameterCount), null);
        } catch (RuntimeException | Error e) {
            outputs.forEach(Output::release);
            throw e;
        }
    }

    /** Returns the error code that has a number in frames. */
    static ErrorCode code(int number) {
        return number < PYTHON_CODES ? CODES[number] : ErrorCode.INTERNAL;
    }

    Kind kind() {
        return kind;
    }

    boolean isFinal() {
        return isFinal;
    }

    /** Returns the size of all outputs in bytes. */
    long byteSize() {
        long bytes = 0;
        for (Output output : outputs) {
            bytes += output.tensor().size();
        }
        return bytes;
    }

    @Nullable
    BackendException error() {
        return error;
    }

    /** Releases the memory of outputs that are not put into a response. */
    void release() {
        outputs.forEach(Output::release);
    }

    /**
     * Puts outputs and parameters into a response, to which the memory belongs from now on.
     *
     * @throws BackendException if the response does not take one of them; the memory of the others is released
     */
    void putInto(InferenceResponse response) {
        int next = 0;
        try {
            while (next < outputs.size()) {
                Output output = outputs.get(next++);
                put(response, output);
            }
            if (!parameters.isEmpty()) {
                putParameters(response);
            }
        } finally {
            while (next < outputs.size()) {
                outputs.get(next++).release();
            }
        }
    }

    private static void put(InferenceResponse response, Output output) {
        FrameTensor tensor = output.tensor();
        HeldSlot slot = output.slot();
        if (tensor.type() == DataType.BYTES) {
            try {
                MemorySegment source = slot == null ? tensor.data() : slot.data();
                Tensor copy = response.allocateBytes(output.name(), tensor.shape(), tensor.size());
                MemorySegment.copy(source, 0, copy.data(), 0, tensor.size());
                checkTexts(output.name(), copy.data(), tensor.elements());
            } finally {
                output.release();
            }
        } else if (slot == null) {
            Tensor copy = response.allocate(output.name(), tensor.type(), tensor.shape());
            MemorySegment.copy(tensor.data(), 0, copy.data(), 0, tensor.size());
        } else {
            response.put(output.name(), Tensor.of(tensor.type(), tensor.shape(), slot.data()), slot::release);
        }
    }

    private static void checkTexts(String name, MemorySegment texts, long elements) {
        long position = 0;
        long size = texts.byteSize();
        for (long i = 0; i < elements; i++) {
            long length = size - position < Integer.BYTES ? -1 : Integer.toUnsignedLong(texts.get(LENGTH, position));
            if (length < 0 || length > size - position - Integer.BYTES) {
                throw new BackendException(
                        ErrorCode.INTERNAL,
                        "output '" + name + "': text " + i + " runs beyond the end of the tensor of " + size
                                + " bytes");
            }
            position += Integer.BYTES + length;
        }
        if (position != size) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "output '" + name + "': " + (size - position) + " bytes behind the last of " + elements + " texts");
        }
    }

    private void putParameters(InferenceResponse response) {
        parameters.forEach((name, value) -> {
            try {
                switch (value) {
                    case Boolean flag -> response.parameter(name, flag);
                    case Long number -> response.parameter(name, number);
                    default -> response.parameter(name, value.toString());
                }
            } catch (IllegalArgumentException e) {
                throw new BackendException(ErrorCode.INVALID_ARGUMENT, String.valueOf(e.getMessage()), e);
            }
        });
    }
}
