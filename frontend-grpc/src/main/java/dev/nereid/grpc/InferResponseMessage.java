package dev.nereid.grpc;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Tensor;
import io.grpc.Drainable;
import io.grpc.KnownLength;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * A {@code ModelInferResponse} as the transport reads it: outputs are copied once, from where the response has them
 * to the transport's buffers. Confined to the thread that answers the call; readable as long as the response is open.
 */
final class InferResponseMessage extends InputStream implements Drainable, KnownLength {
    /** The transport takes heap arrays only; one that stays in the first-level cache makes the detour cheap. */
    private static final int CHUNK_BYTES = 16 * 1024;

    private final List<MemorySegment> parts;
    private int length;
    private int part;
    private long position;

    private InferResponseMessage(List<MemorySegment> parts, int length) {
        this.parts = parts;
        this.length = length;
    }

    /**
     * Writes a response.
     *
     * @throws InferenceException if the message would be longer than the protocol allows
     */
    static InferResponseMessage of(InferResponse response) {
        WireWriter writer = new WireWriter();
        writer.textField(1, response.model());
        writer.textField(2, Long.toString(response.version()));
        writer.textField(3, response.id());
        response.parameters().forEach((name, value) -> writer.messageField(4, () -> parameter(writer, name, value)));
        for (NamedTensor output : response.outputs()) {
            writer.messageField(5, () -> output(writer, output));
        }
        return of(writer, response.outputs());
    }

    private static InferResponseMessage of(WireWriter writer, List<NamedTensor> outputs) {
        List<MemorySegment> parts = new ArrayList<>(2 * outputs.size() + 1);
        int written = 0;
        long length = 0;
        List<Integer> ends = new ArrayList<>(outputs.size());
        for (NamedTensor output : outputs) {
            writer.lengthField(6, output.tensor().byteSize());
            ends.add(writer.size());
            length += output.tensor().byteSize();
        }
        length += writer.size();
        if (length > Integer.MAX_VALUE) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Response has byte size " + length + " which exceeds gRPC's byte size limit " + Integer.MAX_VALUE
                            + ".");
        }
        MemorySegment fields = MemorySegment.ofArray(writer.array()).asSlice(0, writer.size());
        for (int i = 0; i < outputs.size(); i++) {
            parts.add(fields.asSlice(written, ends.get(i) - written));
            parts.add(outputs.get(i).tensor().data());
            written = ends.get(i);
        }
        parts.add(fields.asSlice(written));
        return new InferResponseMessage(parts, (int) length);
    }

    private static void output(WireWriter writer, NamedTensor output) {
        Tensor tensor = output.tensor();
        writer.textField(1, output.name());
        writer.textField(2, tensor.type().name());
        writer.packedField(3, tensor.shape().toArray());
    }

    private static void parameter(WireWriter writer, String name, ParameterValue value) {
        writer.presentTextField(1, name);
        writer.messageField(2, () -> {
            switch (value) {
                case ParameterValue.Bool(boolean flag) -> writer.varintField(1, flag ? 1 : 0);
                case ParameterValue.Int(long number) -> writer.varintField(2, number);
                case ParameterValue.Text(String text) -> writer.presentTextField(3, text);
                case ParameterValue.Real(double number) -> writer.doubleField(4, number);
            }
        });
    }

    @Override
    public int available() {
        return length;
    }

    @Override
    public int drainTo(OutputStream target) throws IOException {
        int total = length;
        byte[] chunk = new byte[Math.min(CHUNK_BYTES, total)];
        while (length > 0) {
            target.write(chunk, 0, read(chunk, 0, chunk.length));
        }
        return total;
    }

    @Override
    public int read() {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
    }

    @Override
    public int read(byte[] target, int offset, int count) {
        if (length == 0) {
            return count == 0 ? 0 : -1;
        }
        int wanted = Math.min(count, length);
        int done = 0;
        while (done < wanted) {
            MemorySegment source = parts.get(part);
            int step = (int) Math.min(wanted - done, source.byteSize() - position);
            MemorySegment.copy(source, ValueLayout.JAVA_BYTE, position, target, offset + done, step);
            done += step;
            position += step;
            if (position == source.byteSize()) {
                part++;
                position = 0;
            }
        }
        length -= wanted;
        return wanted;
    }
}
