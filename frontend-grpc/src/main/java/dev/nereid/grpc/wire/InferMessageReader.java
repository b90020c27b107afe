package dev.nereid.grpc.wire;

import static dev.nereid.grpc.wire.WireReader.BYTES;
import static dev.nereid.grpc.wire.WireReader.FIXED64;
import static dev.nereid.grpc.wire.WireReader.VARINT;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Parses {@code ModelInferRequest} messages without copying their tensors. Confined to one thread at a time.
 *
 * <p>The generated class would copy every tensor to the heap. This class records the positions of tensors and reads the
 * few other fields. It accepts the same messages as the generated class and reads the same values from them. {@link
 * TypedContents} parses typed contents later.
 */
public final class InferMessageReader {
    /** The maximum number of inputs, outputs, dimensions, parameters: above any model's, few enough for any heap. */
    private static final int MAX_ENTRIES = 65_536;

    /** The maximum length of a text, in UTF-8. Names are far shorter, and prompts are tensors. */
    static final int MAX_TEXT_BYTES = 64 << 10;

    /** The maximum length of all texts of a message together. */
    private static final int MAX_TEXTS_BYTES = 4 << 20;

    private static final int MAX_FIELDS_BEFORE_RAW = 64;

    private static final int INITIAL_TENSORS = 2;

    private final WireReader reader;
    private int entries;
    private int textBytes;
    private String model = "";
    private String version = "";
    private String id = "";
    private Map<String, WireParameter> parameters = Map.of();
    private final List<InferMessage.Input> inputs = new ArrayList<>(INITIAL_TENSORS);
    private final List<InferMessage.Output> outputs = new ArrayList<>(0); // most clients list no outputs
    private final List<ByteRange> rawContents = new ArrayList<>(INITIAL_TENSORS);

    private InferMessageReader(WireReader reader) {
        this.reader = reader;
    }

    /**
     * Parses a message.
     *
     * @param bytes the message; stays the caller's if this method throws
     * @throws InferenceException if the bytes are no such message
     */
    public static InferMessage read(MessageBytes bytes) {
        InferMessageReader message = new InferMessageReader(WireReader.of(bytes));
        message.read();
        return new InferMessage(
                bytes,
                new RequestNames(message.model, message.version, message.id),
                message.parameters,
                message.inputs,
                message.outputs,
                message.rawContents);
    }

    /**
     * Reads and parses a message. Its bytes stay in place until the stream is closed.
     *
     * @param memory provides memory for a copy of the bytes if they are not in direct memory
     * @throws InferenceException if the bytes are no such message
     */
    public static InferMessage read(InputStream stream, TensorMemory memory) {
        return read(stream, memory, InferMessageReader::read);
    }

    /** Reads a message, as {@link #read(InputStream, TensorMemory)} does, and parses it with a given parser. */
    public static InferMessage read(
            InputStream stream, TensorMemory memory, Function<MessageBytes, InferMessage> parser) {
        MessageBytes bytes = bytes(stream, memory);
        try {
            return parser.apply(bytes);
        } catch (InferenceException error) {
            bytes.close();
            throw error;
        }
    }

    private static MessageBytes bytes(InputStream stream, TensorMemory memory) {
        try {
            return MessageBytes.of(stream, memory);
        } catch (IOException _) {
            throw GrpcErrors.malformed();
        } catch (StatusRuntimeException refusal) {
            throw GrpcErrors.refused(refusal);
        }
    }

    /** Says whether raw contents begin in the first bytes of a message. A few other fields at most may precede them. */
    public static boolean isRaw(MessageBytes beginning) {
        WireReader reader = WireReader.of(beginning);
        try {
            for (int i = 0; i < MAX_FIELDS_BEFORE_RAW && reader.hasMore(); i++) {
                int tag = reader.tag();
                if (tag == (7 << 3 | BYTES)) {
                    return true;
                }
                reader.skip(tag);
            }
        } catch (InferenceException _) {
            return false; // the message continues after these bytes
        }
        return false;
    }

    private void read() {
        while (reader.hasMore()) {
            int tag = reader.tag();
            count();
            switch (tag) {
                case 1 << 3 | BYTES -> model = text("model name");
                case 2 << 3 | BYTES -> version = text("model version");
                case 3 << 3 | BYTES -> id = text("request id");
                case 4 << 3 | BYTES -> parameters = parameter(parameters);
                case 5 << 3 | BYTES -> inputs.add(input());
                case 6 << 3 | BYTES -> outputs.add(output());
                case 7 << 3 | BYTES -> rawContents.add(reader.range());
                default -> reader.skip(tag);
            }
        }
    }

    private InferMessage.Input input() {
        int outer = reader.enter();
        String name = "";
        String datatype = "";
        Dims shape = new Dims();
        Map<String, WireParameter> tensorParameters = Map.of();
        List<ByteRange> contents = List.of();
        while (reader.hasMore()) {
            int tag = reader.tag();
            switch (tag) {
                case 1 << 3 | BYTES -> name = text("input name");
                case 2 << 3 | BYTES -> datatype = text("datatype");
                case 3 << 3 | BYTES -> dims(name, shape);
                case 3 << 3 | VARINT -> {
                    count();
                    shape.add(name, reader.varint());
                }
                case 4 << 3 | BYTES -> tensorParameters = parameter(tensorParameters);
                case 5 << 3 | BYTES -> {
                    count();
                    contents = appended(contents, reader.range());
                }
                default -> reader.skip(tag);
            }
        }
        reader.leave(outer);
        return new InferMessage.Input(name, datatype, shape, tensorParameters, contents);
    }

    private InferMessage.Output output() {
        int outer = reader.enter();
        String name = "";
        Map<String, WireParameter> tensorParameters = Map.of();
        while (reader.hasMore()) {
            int tag = reader.tag();
            switch (tag) {
                case 1 << 3 | BYTES -> name = text("output name");
                case 2 << 3 | BYTES -> tensorParameters = parameter(tensorParameters);
                default -> reader.skip(tag);
            }
        }
        reader.leave(outer);
        return new InferMessage.Output(name, tensorParameters);
    }

    private void dims(String input, Dims shape) {
        int outer = reader.enter();
        while (reader.hasMore()) {
            count();
            shape.add(input, reader.varint());
        }
        reader.leave(outer);
    }

    private String text(String what) {
        String text = reader.string(MAX_TEXT_BYTES, what);
        textBytes += text.length();
        if (textBytes > MAX_TEXTS_BYTES) {
            throw InferenceException.tooLarge("names and parameters of the request take more than " + MAX_TEXTS_BYTES
                    + " bytes (expected: at most so many)");
        }
        return text;
    }

    private static List<ByteRange> appended(List<ByteRange> ranges, ByteRange range) {
        if (ranges.isEmpty()) {
            return List.of(range);
        }
        List<ByteRange> more = ranges.size() == 1 ? new ArrayList<>(ranges) : ranges;
        more.add(range);
        return more;
    }

    /** Counts an entry, which takes heap memory. Few bytes on the wire could hold very many of them. */
    private void count() {
        if (++entries > MAX_ENTRIES) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "request has too many inputs, outputs, dimensions and parameters (expected: at most " + MAX_ENTRIES
                            + ")");
        }
    }

    private Map<String, WireParameter> parameter(Map<String, WireParameter> before) {
        count();
        Map<String, WireParameter> after = before.isEmpty() ? new LinkedHashMap<>() : before;
        int outer = reader.enter();
        String key = "";
        WireParameter value = WireParameter.None.INSTANCE;
        while (reader.hasMore()) {
            int tag = reader.tag();
            switch (tag) {
                case 1 << 3 | BYTES -> key = text("parameter name");
                case 2 << 3 | BYTES -> value = value(value);
                default -> reader.skip(tag);
            }
        }
        reader.leave(outer);
        after.put(key, value);
        return after;
    }

    private WireParameter value(WireParameter before) {
        int outer = reader.enter();
        WireParameter value = before;
        while (reader.hasMore()) {
            int tag = reader.tag();
            switch (tag) {
                case 1 << 3 | VARINT -> value = parameterValue(new ParameterValue.Bool(reader.varint() != 0));
                case 2 << 3 | VARINT -> value = parameterValue(new ParameterValue.Int(reader.varint()));
                case 3 << 3 | BYTES -> value = parameterValue(new ParameterValue.Text(text("parameter value")));
                case 4 << 3 | FIXED64 ->
                    value = parameterValue(new ParameterValue.Real(Double.longBitsToDouble(reader.fixed64())));
                case 5 << 3 | VARINT -> value = new WireParameter.Unsigned(reader.varint());
                default -> reader.skip(tag);
            }
        }
        reader.leave(outer);
        return value;
    }

    private static WireParameter parameterValue(ParameterValue value) {
        return new WireParameter.Value(value);
    }
}
