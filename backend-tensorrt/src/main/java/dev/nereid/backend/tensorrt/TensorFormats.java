package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.Map;
import java.util.Optional;

/**
 * Checks the formats of the tensors of an engine. Clients send and receive bytes in the format of the engine. Static
 * functions only.
 *
 * <p>Formats that TensorRT pads are refused: their tensors have more bytes than elements.
 */
final class TensorFormats {
    /** How many channels each format joins to a vector; the number of channels is a multiple of it unless padded. */
    private static final Map<String, Integer> CHANNELS_OF_VECTOR =
            Map.of("kHWC", 1, "kCHW2", 2, "kCHW4", 4, "kHWC8", 8, "kCHW16", 16, "kHWC16", 16, "kCHW32", 32);

    private TensorFormats() {}

    /**
     * Checks the format of a tensor.
     *
     * @throws BackendException if it is neither row-major order nor one that the configuration announces and that needs
     *     no padding
     */
    static void check(EngineTensor tensor, ModelSettings settings) throws BackendException {
        if (tensor.isLinear()) {
            return;
        }
        String name = "tensor '" + tensor.name() + "': format " + tensor.format();
        Integer channels = CHANNELS_OF_VECTOR.get(tensor.format());
        if (channels == null) {
            throw TensorRtErrors.unsupported(name + " (expected: kLINEAR, elements in row-major order, or one of "
                    + CHANNELS_OF_VECTOR.keySet().stream().sorted().toList() + ")");
        }
        Optional<TensorSpec> spec = tensor.isInput() ? settings.input(tensor.name()) : settings.output(tensor.name());
        if (spec.isEmpty() || !spec.get().is(TensorSpec.Trait.NON_LINEAR_FORMAT)) {
            throw TensorRtErrors.invalid(name + " (expected: kLINEAR, elements in row-major order, unless the"
                    + " configuration has is_non_linear_format_io: true for the tensor)");
        }
        Shape shape = tensor.shape();
        int first = shape.rank() - 3;
        int batch = settings.batches() ? 1 : 0;
        boolean hasChannels = first >= batch;
        if (!hasChannels || isPadded(shape.dim(first), channels)) {
            throw TensorRtErrors.unsupported(name + " of " + shape + " (expected: a number of channels, the third"
                    + " dimension from the last, that is a multiple of " + channels + ": padding is not supported)");
        }
    }

    /** Returns whether a number of channels may need padding. */
    private static boolean isPadded(long channels, int ofVector) {
        return ofVector > 1 && (channels == Shape.VARIABLE || channels % ofVector != 0);
    }
}
