package dev.nereid.grpc.wire;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
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
import java.util.Map;

/**
 * Serializes a ModelInferResponse or ModelStreamInferResponse, copying each output once. Confined to the thread that
 * sends the response; readable as long as the response is open.
 */
public final class InferResponseMessage extends InputStream implements Drainable, KnownLength {
    /** The size of the array for copies: the transport accepts arrays only. Cheap, as it fits the first-level cache. */
    private static final int CHUNK_BYTES = 16 * 1024;

    /** Outputs up to this size are written after the other fields, into the same array. */
    static final int SMALL_BYTES = CHUNK_BYTES;

    private static final String FINAL = "triton_final_response";

    private final List<MemorySegment> parts;
    private int length;
    private int part;
    private long position;

    private InferResponseMessage(List<MemorySegment> parts, int length) {
        this.parts = parts;
        this.length = length;
    }

    /**
     * Writes the response to a unary call.
     *
     * @param shared the request's tensors in shared memory; such outputs are not sent
     * @param array holds the message if it is small enough; not used otherwise until the message was read
     * @throws InferenceException if the message would be longer than the protocol allows
     */
    public static InferResponseMessage of(InferResponse response, SharedTensors shared, byte[] array) {
        WireWriter writer = new WireWriter(array);
        fields(writer, response);
        Map<String, ParameterValue> parameters = response.parameters();
        if (!parameters.isEmpty()) {
            parameters.forEach((name, value) -> parameterField(writer, name, value));
        }
        boolean small = shared.outputs().isEmpty() && outputBytes(response.outputs()) <= SMALL_BYTES;
        return small ? small(response.outputs(), writer) : ofParts(outputs(response, shared), writer, false);
    }

    private static long outputBytes(List<NamedTensor> outputs) {
        long size = 0;
        for (int i = 0; i < outputs.size(); i++) {
            size += outputs.get(i).tensor().byteSize();
        }
        return size;
    }

    /** Writes everything into one array. A list of parts takes longer than a copy of a small output. */
    private static InferResponseMessage small(List<NamedTensor> outputs, WireWriter writer) {
        for (int i = 0; i < outputs.size(); i++) {
            outputField(writer, outputs.get(i));
        }
        for (int i = 0; i < outputs.size(); i++) {
            writer.bytesField(6, outputs.get(i).tensor().data());
        }
        return new InferResponseMessage(List.of(written(writer)), writer.size());
    }

    /**
     * Writes a response of a stream.
     *
     * @param isFinal whether it ends its request
     * @throws InferenceException as {@link #of} does
     */
    public static InferResponseMessage streamed(InferResponse response, boolean isFinal, SharedTensors shared) {
        WireWriter writer = new WireWriter();
        fields(writer, response);
        response.parameters().forEach((name, value) -> {
            if (!name.equals(FINAL)) {
                parameterField(writer, name, value);
            }
        });
        parameterField(writer, FINAL, new ParameterValue.Bool(isFinal));
        return ofParts(outputs(response, shared), writer, true);
    }

    /** Writes the response of a stream to a refused request. */
    public static InferResponseMessage streamedRefusal(String error, String id) {
        WireWriter writer = new WireWriter();
        writer.presentTextField(1, error);
        int start = writer.begin(2);
        writer.textField(3, id);
        writer.end(start);
        return new InferResponseMessage(List.of(written(writer)), writer.size());
    }

    /**
     * Writes a response of a stream without outputs. It is an error, or the end of a request.
     *
     * @param error the error text; empty for an end without error
     * @param names the names of the request, as the client wrote them
     */
    public static InferResponseMessage streamedEnd(String error, RequestNames names, boolean isFinal) {
        WireWriter writer = new WireWriter();
        writer.textField(1, error);
        int start = writer.begin(2);
        writer.textField(1, names.model());
        writer.textField(2, names.version());
        writer.textField(3, names.id());
        parameterField(writer, FINAL, new ParameterValue.Bool(isFinal));
        writer.end(start);
        return new InferResponseMessage(List.of(written(writer)), writer.size());
    }

    private static void fields(WireWriter writer, InferResponse response) {
        writer.textField(1, response.model());
        writer.textField(2, Long.toString(response.version()));
        writer.textField(3, response.id());
    }

    private static MemorySegment written(WireWriter writer) {
        return MemorySegment.ofArray(writer.array()).asSlice(0, writer.size());
    }

    private static MemorySegment envelope(long length) {
        WireWriter writer = new WireWriter();
        writer.lengthField(2, length);
        return written(writer);
    }

    /** Returns the outputs; outputs in shared memory lack their data. */
    private static List<Output> outputs(InferResponse response, SharedTensors shared) {
        List<Output> outputs = new ArrayList<>(response.outputs().size());
        for (NamedTensor output : response.outputs()) {
            boolean isShared = shared.outputs().contains(output.name());
            outputs.add(new Output(
                    output, isShared ? MemorySegment.NULL : output.tensor().data()));
        }
        return outputs;
    }

    /** An output and its bytes in the message. */
    private record Output(NamedTensor output, MemorySegment data) {}

    private static InferResponseMessage ofParts(List<Output> outputs, WireWriter writer, boolean streamed) {
        for (Output output : outputs) {
            outputField(writer, output.output());
        }
        int[] ends = new int[outputs.size()];
        long length = 0;
        for (int i = 0; i < ends.length; i++) {
            long size = outputs.get(i).data().byteSize();
            writer.lengthField(6, size);
            ends[i] = writer.size();
            length += size;
        }
        length += writer.size();
        MemorySegment envelope = streamed ? envelope(length) : MemorySegment.NULL;
        length += envelope.byteSize();
        if (length > Integer.MAX_VALUE) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Response has byte size " + length + " which exceeds gRPC's byte size limit " + Integer.MAX_VALUE
                            + ".");
        }
        List<MemorySegment> parts = new ArrayList<>(2 * ends.length + 2);
        parts.add(envelope);
        MemorySegment fields = written(writer);
        int at = 0;
        for (int i = 0; i < ends.length; i++) {
            parts.add(fields.asSlice(at, ends[i] - at));
            parts.add(outputs.get(i).data());
            at = ends[i];
        }
        parts.add(fields.asSlice(at));
        return new InferResponseMessage(parts, (int) length);
    }

    private static void outputField(WireWriter writer, NamedTensor output) {
        Tensor tensor = output.tensor();
        int start = writer.begin(5);
        writer.textField(1, output.name());
        writer.textField(2, tensor.type().name());
        writer.dimsField(3, tensor.shape());
        writer.end(start);
    }

    private static void parameterField(WireWriter writer, String name, ParameterValue value) {
        int entry = writer.begin(4);
        writer.presentTextField(1, name);
        int choice = writer.begin(2);
        switch (value) {
            case ParameterValue.Bool(boolean flag) -> writer.varintField(1, flag ? 1 : 0);
            case ParameterValue.Int(long number) -> writer.varintField(2, number);
            case ParameterValue.Text(String text) -> writer.presentTextField(3, text);
            case ParameterValue.Real(double number) -> writer.doubleField(4, number);
        }
        writer.end(choice);
        writer.end(entry);
    }

    @Override
    public int available() {
        return length;
    }

    @Override
    public int drainTo(OutputStream target) throws IOException {
        int total = length;
        if (parts.size() == 1 && parts.getFirst().heapBase().orElse(null) instanceof byte[] array) {
            target.write(array, Math.toIntExact(parts.getFirst().address() + position), total);
            position += total;
            length = 0;
            return total;
        }
        byte[] chunk = new byte[Math.min(CHUNK_BYTES, total)];
        while (length > 0) {
            target.write(chunk, 0, read(chunk, 0, chunk.length));
        }
        return total;
    }

    @Override
    public int read() {
        byte[] single = new byte[1];
        return read(single, 0, 1) < 0 ? -1 : single[0] & 0xFF;
    }

    @Override
    public int read(byte[] target, int offset, int count) {
        if (length == 0) {
            return count == 0 ? 0 : -1;
        }
        int total = Math.min(count, length);
        int done = 0;
        while (done < total) {
            MemorySegment source = parts.get(part);
            int step = (int) Math.min(total - done, source.byteSize() - position);
            MemorySegment.copy(source, ValueLayout.JAVA_BYTE, position, target, offset + done, step);
            done += step;
            position += step;
            if (position == source.byteSize()) {
                part++;
                position = 0;
            }
        }
        length -= total;
        return total;
    }
}
