package dev.nereid.http.json;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;

/** Writes tensor elements as a flat or nested JSON array. Immutable. */
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

    /** Writes nested arrays by the shape; one flat array where the tensor has fewer or more elements than its shape. */
    public static void writeNested(JsonWriter json, NamedTensor output) {
        Tensor tensor = output.tensor();
        long count = tensor.shape().elementCount();
        if (count == 0
                || rowEnd(tensor.type(), tensor.data(), 0, count)
                        != tensor.data().byteSize()) {
            write(json, output);
        } else {
            writeNested(json, output, tensor.shape().toArray(), 0, 0);
        }
    }

    /** Writes the array of one dimension, and returns the offset behind its last element. */
    private static long writeNested(JsonWriter json, NamedTensor output, long[] dims, int dim, long from) {
        json.raw('[');
        long at = from;
        if (dim == dims.length - 1) {
            MemorySegment data = output.tensor().data();
            at = rowEnd(output.tensor().type(), data, from, dims[dim]);
            writeElements(json, output, data.asSlice(from, at - from));
        } else {
            for (long i = 0; i < dims[dim]; i++) {
                if (i > 0) {
                    json.raw(',');
                }
                at = writeNested(json, output, dims, dim + 1, at);
            }
        }
        json.raw(']');
        return at;
    }

    /** Returns the offset behind a number of elements; -1 if the data ends before. */
    private static long rowEnd(DataType type, MemorySegment data, long from, long count) {
        long end = data.byteSize();
        if (type != DataType.BYTES) {
            return count > (end - from) / type.byteSize() ? -1 : from + count * type.byteSize();
        }
        long at = from;
        for (long i = 0; i < count; i++) {
            if (end - at < BYTES_PREFIX) {
                return -1;
            }
            at += BYTES_PREFIX + (data.get(LittleEndian.INT, at) & UNSIGNED_INT);
        }
        return at > end ? -1 : at;
    }

    /** Writes the elements, with commas between them. */
    public static void writeElements(JsonWriter json, NamedTensor output) {
        writeElements(json, output, output.tensor().data());
    }

    private static void writeElements(JsonWriter json, NamedTensor output, MemorySegment data) {
        DataType type = output.tensor().type();
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
