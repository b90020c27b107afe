package dev.nereid.backend.pytorch.presets;

import dev.nereid.spi.DataType;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch.ScalarType;
import org.jspecify.annotations.Nullable;

/** Maps data types of the SPI to scalar types of PyTorch. Static functions only. */
final class ElementType {
    /** By the value of PyTorch. */
    private static final @Nullable DataType[] DATA_TYPES = new DataType[ScalarType.NumOptions.value + 1];

    /** The same for each tensor of a type, and never freed. */
    private static final Map<DataType, TensorOptions> OPTIONS = new EnumMap<>(DataType.class);

    static {
        pair(DataType.BOOL, ScalarType.Bool);
        pair(DataType.UINT8, ScalarType.Byte);
        pair(DataType.INT8, ScalarType.Char);
        pair(DataType.INT16, ScalarType.Short);
        pair(DataType.INT32, ScalarType.Int);
        pair(DataType.INT64, ScalarType.Long);
        pair(DataType.FP16, ScalarType.Half);
        pair(DataType.FP32, ScalarType.Float);
        pair(DataType.FP64, ScalarType.Double);
        pair(DataType.BF16, ScalarType.BFloat16);
    }

    private ElementType() {}

    /**
     * Creates the constants, as the first use of this class does. To be called outside of any {@code PointerScope}: the
     * end of a scope would free them.
     */
    static void create() {
        if (PointerScope.getInnerScope() != null) {
            throw new IllegalStateException("constants of PyTorch created in a scope");
        }
    }

    private static void pair(DataType type, ScalarType scalarType) {
        DATA_TYPES[scalarType.value] = type;
        OPTIONS.put(type, new TensorOptions(scalarType));
    }

    /** Returns the type of the SPI; empty if there is none, as for quantized and complex elements. */
    static Optional<DataType> of(ScalarType type) {
        int value = Byte.toUnsignedInt(type.value);
        return value < DATA_TYPES.length ? Optional.ofNullable(DATA_TYPES[value]) : Optional.empty();
    }

    /** Returns the options of a tensor of a type; throws {@link IllegalArgumentException} if tensors cannot have it. */
    static TensorOptions options(DataType type) {
        TensorOptions options = OPTIONS.get(type);
        if (options == null) {
            throw new IllegalArgumentException("type: " + type + " (expected: one of PyTorch's)");
        }
        return options;
    }
}
