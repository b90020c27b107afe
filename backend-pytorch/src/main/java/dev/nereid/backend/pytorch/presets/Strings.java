package dev.nereid.backend.pytorch.presets;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.pytorch.GenericList;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.StringType;
import org.bytedeco.pytorch.Type;

/** Texts of any bytes, to and from PyTorch. Static functions only. */
final class Strings {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final byte[] NO_BYTES = {};

    /** The largest size of all texts of a list, which are copied into the heap. */
    private static final long MAX_BYTES =
            Math.min(Integer.MAX_VALUE - Long.BYTES, Runtime.getRuntime().maxMemory() / 4);

    /**
     * The type of texts, which PyTorch never frees. From the type itself: the pointer that PyTorch returns has half of the
     * size of this one.
     */
    private static final Type.TypePtr TYPE = new Type.TypePtr(StringType.get().get());

    private Strings() {}

    /** Returns an empty list of texts, owned by the caller. */
    static GenericList list() {
        return new GenericList(TYPE);
    }

    /**
     * Returns the elements of a tensor of byte strings as one list.
     *
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the elements are cut short, or are others than the
     *     shape says
     */
    static IValue list(Tensor tensor) {
        MemorySegment data = tensor.data();
        long expected = tensor.shape().elementCount();
        try (GenericList list = list()) {
            long position = 0;
            long count = 0;
            while (position < data.byteSize()) {
                long length = data.byteSize() - position < Integer.BYTES
                        ? Long.MAX_VALUE
                        : Integer.toUnsignedLong(data.get(LENGTH, position));
                long available = Math.max(0, data.byteSize() - position - Integer.BYTES);
                if (length > available) {
                    throw new BackendException(
                            ErrorCode.INVALID_ARGUMENT,
                            "incomplete string data: expecting string of length " + length + " but only " + available
                                    + " bytes available");
                }
                byte[] text = data.asSlice(position + Integer.BYTES, length).toArray(ValueLayout.JAVA_BYTE);
                try (IValue element = value(text)) {
                    list.push_back(element);
                }
                position += Integer.BYTES + length;
                count++;
            }
            if (count != expected) {
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT,
                        "unexpected number of string elements " + count + ", expecting " + expected);
            }
            return new IValue(list);
        }
    }

    /** Returns a text of any bytes, owned by the caller. */
    static IValue value(byte[] text) {
        if (text.length == 0) {
            return new IValue(""); // of a pointer to nothing, the presets would read up to the next zero
        }
        try (BytePointer bytes = new BytePointer(text)) {
            return new IValue(bytes);
        }
    }

    static byte[][] bytes(GenericList list, int size) {
        byte[][] texts = new byte[size][];
        long total = 0;
        for (int i = 0; i < size; i++) {
            try (IValue element = list.get(i)) {
                texts[i] = bytes(element);
                total += texts[i].length;
                requireSize(total);
            }
        }
        return texts;
    }

    static byte[] bytes(IValue value) {
        try (BytePointer text = value.toStringRef()) {
            if (text == null) { // of an empty text
                return NO_BYTES;
            }
            requireSize(text.limit());
            byte[] bytes = new byte[(int) text.limit()];
            text.get(bytes);
            return bytes;
        }
    }

    private static void requireSize(long bytes) {
        if (bytes > MAX_BYTES) {
            throw new IllegalStateException("texts of " + bytes + " bytes in the result (expected: at most " + MAX_BYTES
                    + ", a quarter of the heap; or a tensor)");
        }
    }

    static String text(IValue value) {
        return new String(bytes(value), StandardCharsets.UTF_8);
    }
}
