package dev.nereid.backend.python.call;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.frame.ParameterJson;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Writes the frames CALL_RESPONSE and REPLY for one process. Safe for use by any thread; never blocks. */
final class ResponseFrames {
    static final int FINAL = 1;
    static final int HAS_RESPONSE = 2;
    static final int ERROR = 4;
    static final int REFUSED = 8;

    /** The largest output in a frame where shared memory is used up, in bytes; Python has the same limit. */
    static final long MAX_INLINE = 64L << 20;

    private static final int INTERNAL = 1;
    private static final int MAX_RANK = 255;

    private final FrameSink sink;
    private final TensorMemory memory;
    private final long inlineLimit;
    private final WriterPool writers = new WriterPool();

    /** Creates the writer of frames; outputs of at most {@code inlineLimit} bytes are sent within a frame. */
    ResponseFrames(FrameSink sink, TensorMemory memory, long inlineLimit) {
        this.sink = sink;
        this.memory = memory;
        this.inlineLimit = inlineLimit;
    }

    /** Sends a response, which stays open. If it cannot be written, this throws an exception and sends nothing. */
    void response(long id, ModelResponse response, boolean isFinal) {
        List<String> names = response.outputs();
        check("number of outputs", names.size(), FrameType.MAX_COUNT);
        String parameters = parameters(response);
        int flags = HAS_RESPONSE | (isFinal ? FINAL : 0);
        List<TensorMemory.Incoming> slots = new ArrayList<>(2);
        FrameWriter writer = writers.take();
        boolean sent = false;
        try {
            head(writer, id, flags, 0, names.size(), "", parameters);
            for (String name : names) {
                byte[] encoded = name.getBytes(UTF_8);
                check("length of the name of an output", encoded.length, FrameType.MAX_COUNT);
                put(writer, encoded.length, response.requireOutput(name), slots);
                writer.bytes(encoded);
            }
            sink.send(writer.end());
            sent = true;
        } finally {
            if (!sent) {
                slots.forEach(TensorMemory.Incoming::discard);
            }
            writers.give(writer);
        }
    }

    private void put(FrameWriter writer, int name, Tensor tensor, List<TensorMemory.Incoming> slots) {
        check("dimensions of an output", tensor.shape().rank(), MAX_RANK);
        long size = tensor.byteSize();
        TensorMemory.Incoming slot = size <= inlineLimit ? null : memory.allocate(size);
        if (slot != null) {
            slots.add(slot);
            MemorySegment.copy(tensor.data(), 0, slot.data(), 0, size);
            slot.written();
            writer.sharedTensor(name, tensor.type(), tensor.shape(), slot.segment(), slot.offset(), size);
        } else if (size <= Math.max(inlineLimit, MAX_INLINE)) {
            try {
                writer.inlineTensor(name, tensor);
            } catch (OutOfMemoryError e) { // of the limit for memory outside of the heap
                throw new BackendException(ErrorCode.INTERNAL, noMemory(size), e);
            }
        } else {
            throw new BackendException(ErrorCode.INTERNAL, noMemory(size));
        }
    }

    private static String noMemory(long size) {
        return "Failed to increase the shared memory pool size to " + size
                + " bytes: no memory is left for an output of a model that was called.";
    }

    private static void check(String what, int value, int limit) {
        if (value > limit) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "response to a Python model: " + what + ": " + value + " (expected: at most " + limit + ")");
        }
    }

    /** Sends the error of a model that has responded. */
    @SuppressWarnings("EnumOrdinal") // the protocol has the codes in this order
    void failed(long id, BackendException error, boolean isFinal) {
        // The number of a code is its position in both enumerations; Python takes numbers that it does not know as
        // UNKNOWN.
        error(id, ERROR | (isFinal ? FINAL : 0), error.code().ordinal(), text(error));
    }

    /** Sends the refusal of a request, and ends the call. */
    void refused(long id, String text) {
        error(id, ERROR | REFUSED | FINAL, INTERNAL, text);
    }

    void end(long id) {
        error(id, FINAL, 0, "");
    }

    private void error(long id, int flags, int code, String text) {
        FrameWriter writer = writers.take();
        try {
            head(writer, id, flags, code, 0, text, "");
            sink.send(writer.end());
        } finally {
            writers.give(writer);
        }
    }

    private static void head(
            FrameWriter writer, long id, int flags, int code, int outputs, String text, String parameters) {
        byte[] textBytes = text.getBytes(UTF_8);
        byte[] parameterBytes = parameters.getBytes(UTF_8);
        writer.begin(FrameType.CALL_RESPONSE, flags, 0, id)
                .u8(0)
                .u8(code)
                .u16(outputs)
                .u32(0)
                .u32(textBytes.length)
                .u32(parameterBytes.length)
                .bytes(textBytes)
                .bytes(parameterBytes);
    }

    /** Replies to a control operation. */
    void reply(long id, double value) {
        reply(id, 0, value, "");
    }

    /** Replies to a control operation that has failed. */
    void replyError(long id, String text) {
        reply(id, 1, 0, text);
    }

    private void reply(long id, int flags, double value, String text) {
        FrameWriter writer = writers.take();
        try {
            sink.send(writer.begin(FrameType.REPLY, flags, 0, id)
                    .f64(value)
                    .text(text)
                    .end());
        } finally {
            writers.give(writer);
        }
    }

    static String text(Throwable error) {
        String message = error.getMessage();
        return error instanceof BackendException && message != null ? message : "internal error: " + error;
    }

    private static String parameters(ModelResponse response) {
        Map<String, Object> values = response.parameters().asMap();
        return values.isEmpty() ? "" : ParameterJson.of(values);
    }
}
