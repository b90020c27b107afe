package dev.nereid.attacks;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The only input of an inference, named INPUT0. Immutable, except the data, which is never changed.
 *
 * @param id the request's id
 * @param datatype the type's name on the wire
 * @param shape the dimensions, which may be false
 * @param data the elements
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
record Tensor(String id, String datatype, long[] shape, byte[] data) {
    /** Returns FP32 of one dimension. */
    static Tensor floats(String id, float... values) {
        ByteBuffer data = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        data.asFloatBuffer().put(values);
        return new Tensor(id, "FP32", new long[] {values.length}, data.array());
    }

    /** Returns zeros, FP32 of one dimension. */
    static Tensor zeros(int byteSize) {
        return new Tensor("", "FP32", new long[] {byteSize / Float.BYTES}, new byte[byteSize]);
    }

    /** Returns the same data with dimensions that do not fit it. */
    Tensor shaped(long... dimensions) {
        return new Tensor(id, datatype, dimensions, data);
    }

    String shapeText() {
        return Arrays.toString(shape);
    }
}
