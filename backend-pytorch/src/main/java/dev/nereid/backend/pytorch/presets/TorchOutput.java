package dev.nereid.backend.pytorch.presets;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Optional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch.Layout;
import org.jspecify.annotations.Nullable;

/**
 * One value of the result of an execution. Immutable; its memory is that of PyTorch.
 *
 * <p>Owner: the caller of {@link TorchExecution#run}, which closes it when the memory is not read any more, on any thread.
 */
public final class TorchOutput implements AutoCloseable {
    /** Kind of a value. */
    public enum Kind {
        /** A tensor, or a number or truth value, which is a tensor of one element. */
        TENSOR,
        /** Texts. */
        STRINGS,
        /** A sparse tensor. */
        SPARSE,
        /** Nothing that a client can receive. */
        OTHER
    }

    /** The lengths in front of texts. */
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final byte[][] NO_TEXTS = {};
    private static final long[] ONE = {1};

    private final Kind kind;
    private final String key;
    private final String typeText;
    private final @Nullable Tensor tensor;
    private final @Nullable DataType type;
    private final Shape shape;
    private final MemorySegment data;
    private final byte[][] texts;

    private TorchOutput(
            Kind kind,
            String key,
            String typeText,
            @Nullable Tensor tensor,
            @Nullable DataType type,
            Shape shape,
            MemorySegment data,
            byte[][] texts) {
        this.kind = kind;
        this.key = key;
        this.typeText = typeText;
        this.tensor = tensor;
        this.type = type;
        this.shape = shape;
        this.data = data;
        this.texts = texts;
    }

    /**
     * Takes over a tensor with its key in a dictionary, otherwise empty.
     *
     * @param source the tensor, owned by the output from now on, also if this throws
     * @param copied whether an execution may change its memory later
     */
    static TorchOutput tensor(String key, Tensor source, boolean copied) {
        Tensor tensor = source;
        try {
            if (tensor.layout().value != Layout.Strided.value || tensor.is_nested()) {
                tensor.close();
                return new TorchOutput(Kind.SPARSE, key, "", null, null, Shape.SCALAR, MemorySegment.NULL, NO_TEXTS);
            }
            if (!tensor.is_cpu()) {
                throw new IllegalStateException("output tensor is not in memory of the host");
            }
            Optional<DataType> type = ElementType.of(tensor.scalar_type());
            if (type.isEmpty()) {
                String name = tensor.scalar_type().intern().toString();
                tensor.close();
                return new TorchOutput(Kind.TENSOR, key, name, null, null, Shape.SCALAR, MemorySegment.NULL, NO_TEXTS);
            }
            if (tensor.is_neg()) {
                tensor = replaced(tensor, tensor.resolve_neg());
            }
            if (copied) {
                tensor = replaced(tensor, tensor.clone());
            }
            if (!tensor.is_contiguous()) {
                tensor = replaced(tensor, tensor.contiguous());
            }
            long[] dims = new long[(int) tensor.dim()];
            long elements = 1;
            for (int i = 0; i < dims.length; i++) {
                dims[i] = tensor.size(i);
                elements *= dims[i];
            }
            MemorySegment data = elements == 0
                    ? MemorySegment.NULL
                    : memory(tensor.data_ptr().address(), elements * type.get().byteSize());
            return new TorchOutput(Kind.TENSOR, key, "", tensor, type.get(), Shape.of(dims), data, NO_TEXTS);
        } catch (RuntimeException e) {
            tensor.close();
            throw e;
        }
    }

    private static Tensor replaced(Tensor old, Tensor next) {
        old.close();
        return next;
    }

    @SuppressWarnings("restricted") // memory of PyTorch
    private static MemorySegment memory(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    static TorchOutput number(String key, DataType type, Object... values) {
        MemorySegment data = Arena.ofAuto().allocate((long) type.byteSize() * values.length, Long.BYTES);
        for (int i = 0; i < values.length; i++) {
            switch (values[i]) {
                case Long number -> data.setAtIndex(ValueLayout.JAVA_LONG, i, number);
                case Double number -> data.setAtIndex(ValueLayout.JAVA_DOUBLE, i, number);
                case Boolean truth -> data.set(ValueLayout.JAVA_BOOLEAN, i, truth);
                default -> throw new IllegalArgumentException("value: " + values[i].getClass());
            }
        }
        return new TorchOutput(Kind.TENSOR, key, "", null, type, Shape.of(values.length), data, NO_TEXTS);
    }

    static TorchOutput strings(String key, byte[]... texts) {
        return new TorchOutput(
                Kind.STRINGS, key, "", null, DataType.BYTES, Shape.of(texts.length), MemorySegment.NULL, texts);
    }

    static TorchOutput other(String key, String typeText) {
        return new TorchOutput(Kind.OTHER, key, typeText, null, null, Shape.SCALAR, MemorySegment.NULL, NO_TEXTS);
    }

    public Kind kind() {
        return kind;
    }

    /** Returns the key of the value in a dictionary; empty where it is in none. */
    public String key() {
        return key;
    }

    /** Returns the type of a value that a client cannot receive, in the words of PyTorch; empty for others. */
    public String typeText() {
        return typeText;
    }

    /** Returns the type of the elements; empty if the SPI has none for it. */
    public Optional<DataType> type() {
        return Optional.ofNullable(type);
    }

    /** Returns the dimensions: the shape of a tensor; the number of texts; {@code [1]} of a number. */
    public Shape shape() {
        return shape.rank() == 0 && kind == Kind.TENSOR ? Shape.of(ONE) : shape;
    }

    /** Returns the elements of a tensor: memory of PyTorch until {@link #close}; empty for no elements, or texts. */
    public MemorySegment data() {
        return data;
    }

    /** Returns the size of texts with their lengths, from {@code start} to before {@code end}. */
    public long stringBytes(int start, int end) {
        long bytes = 0;
        for (int i = start; i < end; i++) {
            bytes += Integer.BYTES + (long) texts[i].length;
        }
        return bytes;
    }

    /** Copies texts from {@code start} to before {@code end} with their lengths, {@link #stringBytes} bytes. */
    public void copyStrings(int start, int end, MemorySegment target) {
        long position = 0;
        for (int i = start; i < end; i++) {
            target.set(LENGTH, position, texts[i].length);
            position += Integer.BYTES;
            MemorySegment.copy(texts[i], 0, target, ValueLayout.JAVA_BYTE, position, texts[i].length);
            position += texts[i].length;
        }
    }

    @Override
    public void close() {
        if (tensor != null) {
            tensor.close();
        }
    }
}
