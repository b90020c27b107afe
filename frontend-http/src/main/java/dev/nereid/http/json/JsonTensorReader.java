package dev.nereid.http.json;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.Quoted;
import dev.nereid.spi.DataType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;

/**
 * Reads the {@code data} of JSON inputs into tensor memory. Confined to the thread that reads a request.
 *
 * <p>Sizes are checked before allocation, and no more is allocated than the text can fill.
 */
public final class JsonTensorReader {
    private static final int BYTES_PREFIX = Integer.BYTES;

    private final long maxBytes;
    private final JsonNumber number = new JsonNumber();
    private boolean ignoredData;

    /** Creates a reader that accepts tensors of at most {@code maxBytes}. */
    public JsonTensorReader(long maxBytes) {
        this.maxBytes = maxBytes;
    }

    /**
     * Reads the data of an input.
     *
     * @param json a text with checked syntax
     * @param at the offset of the data; its numbers may be unchecked: this throws if they are invalid
     * @param input name, datatype and dimensions as received
     */
    public MemorySegment read(JsonReader json, int at, InputMetadata input, SegmentAllocator memory) {
        long expected = InputTensor.elementCount(input.name(), input.dims());
        json.moveTo(at);
        if (json.peek() != '[') {
            throw JsonFields.unparsable(json, "data", JsonErrors.NOT_ARRAY);
        }
        if (expected == 0) {
            readEmpty(json, at, input);
            return memory.allocate(0);
        }
        DataType type = DataType.ofName(input.datatype())
                .orElseThrow(() -> JsonFields.invalid("invalid datatype for input " + Quoted.text(input.name())));
        if (type == DataType.BYTES) {
            return readBytes(json, at, input, memory);
        }
        long byteSize = InputTensor.byteSize(input.name(), type, input.dims());
        checkSize(input, byteSize);
        if (input.dims().length == 0 && !isSingle(json, at)) {
            // Most likely the shape is missing; the server reports what the model expects.
            return memory.allocate(0);
        }
        // An element takes at least its digit and a comma.
        json.moveTo(at);
        long maxElements = Math.min(expected, json.remaining() / 2 + 1);
        MemorySegment data = memory.allocate(maxElements * type.byteSize());
        readFixed(json, at, input, type, expected, data);
        return data;
    }

    /**
     * Returns whether data was ignored since the first dimension of its shape is 0. If that is the batch dimension, the
     * server refuses the request; otherwise the caller must refuse it.
     */
    public boolean ignoredData() {
        return ignoredData;
    }

    /** Returns the error for more elements than the shape has. */
    public static InferenceException tooManyElements() {
        return JsonFields.invalid("Unable to parse 'data': Shape does not match true shape of 'data' field");
    }

    /** Checks that an empty shape has no elements. */
    private void readEmpty(JsonReader json, int at, InputMetadata input) {
        boolean hasElements = new JsonElements(json).next();
        if (hasElements && input.dims()[0] != 0) {
            throw tooManyElements();
        }
        ignoredData |= hasElements;
        json.moveTo(at);
        json.skipValue();
    }

    private static boolean isSingle(JsonReader json, int at) {
        json.moveTo(at);
        JsonElements elements = new JsonElements(json);
        while (elements.next()) {
            json.skipValue();
        }
        return elements.index() == 0;
    }

    private void readFixed(
            JsonReader json, int at, InputMetadata input, DataType type, long expected, MemorySegment data) {
        json.moveTo(at);
        JsonElements elements = new JsonElements(json);
        while (elements.next()) {
            long index = elements.index();
            if (index >= expected) {
                throw tooManyElements();
            }
            if (type == DataType.BOOL) {
                data.set(LittleEndian.BYTE, index, readBool(json, at, index));
            } else {
                long plain = readPlainNumbers(json, at, type, data, index, expected, input.name()) - index;
                if (plain > 0) {
                    elements.skip(plain - 1);
                } else {
                    readNumber(json, at, type, data, index, input.name());
                }
            }
        }
        if (elements.index() + 1 != expected) {
            throw JsonFields.invalid("Failed to parse 'data' field: shape does not match true shape");
        }
    }

    /** Reads plain numbers; returns the index of the next element. Stops at a number without a comma behind it. */
    private long readPlainNumbers(
            JsonReader json, int at, DataType type, MemorySegment data, long first, long expected, String name) {
        return json.readPlainElements(
                number,
                type == DataType.FP32
                        ? (read, i) -> data.set(LittleEndian.FLOAT, i * Float.BYTES, read.floatValue())
                        : (read, i) -> put(json, at, type, data, i, name),
                first,
                expected);
    }

    private void readNumber(JsonReader json, int at, DataType type, MemorySegment data, long index, String name) {
        if (!json.readNumber(number)) {
            throw notNumber(json, at, index, type);
        }
        number.checkRange();
        put(json, at, type, data, index, name);
    }

    private void put(JsonReader json, int at, DataType type, MemorySegment data, long index, String name) {
        if (!put(type, data, index)) {
            throw outOfRange(json, at, name, index, type);
        }
    }

    /** Stores the current number; returns {@code false} if it does not fit the type. */
    private boolean put(DataType type, MemorySegment data, long index) {
        switch (type) {
            case UINT8, UINT16, UINT32, UINT64 -> {
                int bits = type.byteSize() * Byte.SIZE;
                if (!number.isUnsigned() || (bits < Long.SIZE && number.bits() >>> bits != 0)) {
                    return false;
                }
                putInteger(data, index, type.byteSize(), number.bits());
            }
            case INT8, INT16, INT32, INT64 -> {
                long limit = maxSigned(type);
                if (!number.isSigned() || number.bits() > limit || number.bits() < -limit - 1) {
                    return false;
                }
                putInteger(data, index, type.byteSize(), number.bits());
            }
            case FP16 -> data.set(LittleEndian.SHORT, index * Short.BYTES, SmallFloats.toFp16(number.value()));
            case BF16 -> data.set(LittleEndian.SHORT, index * Short.BYTES, SmallFloats.toBf16(number.value()));
            case FP32 -> data.set(LittleEndian.FLOAT, index * Float.BYTES, number.floatValue());
            case FP64 -> data.set(LittleEndian.DOUBLE, index * Double.BYTES, number.value());
            case BOOL, BYTES -> throw new IllegalArgumentException("type: " + type + " (expected: numbers)");
        }
        return true;
    }

    private static InferenceException notNumber(JsonReader json, int at, long index, DataType type) {
        String problem = switch (type) {
            case UINT8, UINT16, UINT32, UINT64 -> JsonErrors.NOT_UNSIGNED;
            case INT8, INT16, INT32, INT64 -> JsonErrors.NOT_SIGNED;
            case BOOL, BYTES, FP16, BF16, FP32, FP64 -> JsonErrors.NOT_NUMBER;
        };
        String expected = problem.equals(JsonErrors.NOT_NUMBER) ? "a number" : "a whole number from " + range(type);
        return unparsable(json, at, index, "Unable to parse 'data': " + problem, expected);
    }

    /** Returns the error of an unreadable element, found again: errors are rare, and recording offsets is expensive. */
    private static InferenceException unparsable(JsonReader json, int at, long index, String text, String expected) {
        json.moveTo(at);
        JsonElements elements = new JsonElements(json);
        while (elements.next() && elements.index() < index) {
            json.skipValue();
        }
        String path = json.path().to("data") + "[" + index + "]";
        return JsonErrors.value(text, path, expected, json.describeValue());
    }

    private static String range(DataType type) {
        long limit = maxSigned(type);
        return type.name().startsWith("INT")
                ? (-limit - 1) + " to " + limit
                : "0 to " + Long.toUnsignedString(2 * limit + 1);
    }

    /** Returns the error of a number that its type cannot hold. It is not a whole one, or out of range. */
    private InferenceException outOfRange(JsonReader json, int at, String name, long index, DataType type) {
        boolean signed = type.name().startsWith("INT");
        if (signed ? !number.isSigned() : !number.isUnsigned()) {
            return notNumber(json, at, index, type);
        }
        String value = signed ? Long.toString(number.bits()) : Long.toUnsignedString(number.bits());
        return JsonFields.invalid("input '" + Quoted.text(name) + "': value " + value + " at index " + index
                + " is out of range for " + type + " (expected: " + range(type) + ")");
    }

    /** Returns the largest signed number of an integer type's size. */
    private static long maxSigned(DataType type) {
        return Long.MAX_VALUE >> (Long.SIZE - type.byteSize() * Byte.SIZE);
    }

    private static byte readBool(JsonReader json, int at, long index) {
        byte first = json.peek();
        if (first != 't' && first != 'f') {
            throw unparsable(json, at, index, "Unable to parse 'data': " + JsonErrors.NOT_BOOLEAN, "true or false");
        }
        json.skipValue();
        return (byte) (first == 't' ? 1 : 0);
    }

    private static void putInteger(MemorySegment data, long index, int size, long value) {
        switch (size) {
            case Byte.BYTES -> data.set(LittleEndian.BYTE, index, (byte) value);
            case Short.BYTES -> data.set(LittleEndian.SHORT, index * size, (short) value);
            case Integer.BYTES -> data.set(LittleEndian.INT, index * size, (int) value);
            default -> data.set(LittleEndian.LONG, index * size, value);
        }
    }

    private MemorySegment readBytes(JsonReader json, int at, InputMetadata input, SegmentAllocator memory) {
        long byteSize = 0;
        json.moveTo(at);
        for (JsonElements elements = new JsonElements(json); elements.next(); ) {
            if (json.peek() != '"') {
                throw unparsable(
                        json,
                        at,
                        elements.index(),
                        "Unable to parse JSON bytes array: " + JsonErrors.NOT_STRING,
                        "a string");
            }
            byteSize += BYTES_PREFIX + json.readStringLength();
        }
        checkSize(input, byteSize);
        MemorySegment data = memory.allocate(byteSize);
        long offset = 0;
        json.moveTo(at);
        for (JsonElements elements = new JsonElements(json); elements.next(); ) {
            long end = json.readString(data, offset + BYTES_PREFIX);
            data.set(LittleEndian.INT, offset, (int) (end - offset - BYTES_PREFIX));
            offset = end;
        }
        return data;
    }

    private void checkSize(InputMetadata input, long byteSize) {
        if (byteSize > maxBytes) {
            throw InferenceException.tooLarge(
                    "JSON input '" + Quoted.text(input.name()) + "' has a byte_size (" + byteSize
                            + " bytes) that exceeds the maximum allowed value of " + maxBytes
                            + " bytes. Use --http-max-input-size to increase the limit.");
        }
    }
}
