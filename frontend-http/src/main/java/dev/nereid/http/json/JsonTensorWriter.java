package dev.nereid.http.json;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import java.lang.foreign.MemorySegment;

/** Writes tensor elements as a flat JSON array. Immutable. */
public final class JsonTensorWriter {
    private static final int BYTES_PREFIX = Integer.BYTES;
    private static final long UNSIGNED_INT = 0xFFFF_FFFFL;

    private JsonTensorWriter() {}

    /** Writes the array, brackets included. */
    public static void write(JsonWriter json, NamedTensor output) {
        json.raw("[");
        writeElements(json, output);
        json.raw("]");
    }

    /** Writes the elements, with commas between them. */
    public static void writeElements(JsonWriter json, NamedTensor output) {
        DataType type = output.tensor().type();
        MemorySegment data = output.tensor().data();
        if (type == DataType.BYTES) {
            writeStrings(json, output.name(), data);
        } else if (type == DataType.FP32) {
            json.reals(data);
        } else {
            int size = type.byteSize();
            long end = data.byteSize();
            for (long at = 0; at < end; at += size) {
                if (at > 0) {
                    json.raw(',');
                }
                writeElement(json, type, data, at);
            }
        }
    }

    private static void writeElement(JsonWriter json, DataType type, MemorySegment data, long at) {
        switch (type) {
            case BOOL -> json.raw(data.get(LittleEndian.BYTE, at) == 0 ? "false" : "true");
            case UINT8 -> json.integer(Byte.toUnsignedInt(data.get(LittleEndian.BYTE, at)));
            case UINT16 -> json.integer(Short.toUnsignedInt(data.get(LittleEndian.SHORT, at)));
            case UINT32 -> json.integer(Integer.toUnsignedLong(data.get(LittleEndian.INT, at)));
            case UINT64 -> json.unsigned(data.get(LittleEndian.LONG, at));
            case INT8 -> json.integer(data.get(LittleEndian.BYTE, at));
            case INT16 -> json.integer(data.get(LittleEndian.SHORT, at));
            case INT32 -> json.integer(data.get(LittleEndian.INT, at));
            case INT64 -> json.integer(data.get(LittleEndian.LONG, at));
            case FP16 -> json.real(SmallFloats.fromFp16(data.get(LittleEndian.SHORT, at)));
            case BF16 -> json.real(SmallFloats.fromBf16(data.get(LittleEndian.SHORT, at)));
            case FP32 -> json.real(data.get(LittleEndian.FLOAT, at));
            case FP64 -> json.real(data.get(LittleEndian.DOUBLE, at));
            case BYTES -> throw new IllegalArgumentException("type: BYTES (expected: a type of fixed size)");
        }
    }

    private static void writeStrings(JsonWriter json, String name, MemorySegment data) {
        long end = data.byteSize();
        long at = 0;
        while (at < end) {
            long left = end - at - BYTES_PREFIX;
            long length = left < 0 ? 0 : data.get(LittleEndian.INT, at) & UNSIGNED_INT;
            if (left < length) {
                throw JsonFields.internal("output '" + name + "': the string at byte " + at
                        + " is truncated; request the output as binary data to see its bytes");
            }
            if (at > 0) {
                json.raw(',');
            }
            json.string(data, at + BYTES_PREFIX, length);
            at += BYTES_PREFIX + length;
        }
    }
}
