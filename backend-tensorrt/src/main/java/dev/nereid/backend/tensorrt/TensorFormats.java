package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.EngineFormat;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Checks the formats of the tensors of an engine. Clients send and receive bytes in the format of the engine. Static
 * functions only.
 *
 * <p>Clients send inputs in full vectors, with any elements in the padding. Outputs with padding are refused: their
 * bytes are more than their elements.
 */
final class TensorFormats {
    /** The formats without vectors that have no padding: channels last. */
    private static final Set<String> WITHOUT_VECTORS = Set.of("kHWC", "kDHWC");

    /** Prefix of formats of another processor, which pads rows. */
    private static final String OF_DLA = "kDLA";

    private TensorFormats() {}

    /** Requires row-major order, or a supported format that is configured; else throws a {@link BackendException}. */
    static void check(EngineTensor tensor, ModelSettings settings) {
        EngineFormat format = tensor.format();
        if (format.isLinear()) {
            return;
        }
        String name = "tensor '" + tensor.name() + "': format " + format.name();
        Optional<TensorSpec> spec = tensor.isInput() ? settings.input(tensor.name()) : settings.output(tensor.name());
        if (spec.isEmpty() || !spec.get().is(TensorSpec.Trait.NON_LINEAR_FORMAT)) {
            throw TensorRtErrors.invalid(name + " (expected: kLINEAR, elements in row-major order, unless the"
                    + " configuration has is_non_linear_format_io: true for the tensor)");
        }
        if (format.name().startsWith(OF_DLA) || (!format.hasVectors() && !WITHOUT_VECTORS.contains(format.name()))) {
            throw TensorRtErrors.unsupported(name + " (expected: kLINEAR, elements in row-major order, kHWC, or one"
                    + " that joins channels to vectors, such as kCHW32)");
        }
        if (!format.hasVectors()) {
            return;
        }
        Shape shape = tensor.shape();
        name += " of " + shape;
        int first = settings.batches() ? 1 : 0;
        if (format.dimension() < first || format.dimension() >= shape.rank()) {
            throw TensorRtErrors.unsupported(name + " joins dimension " + format.dimension()
                    + " to vectors (expected: one of each item, from " + first + " on)");
        }
        if (shape.dim(format.dimension()) == Shape.VARIABLE) {
            throw TensorRtErrors.unsupported(name + " joins dimension " + format.dimension() + " to vectors of "
                    + format.vectorLength() + " (expected: a dimension that is not variable, so that the padding is"
                    + " known)");
        }
        Shape configured = spec.get().backendDims();
        int item = format.dimension() - first;
        if (item < configured.rank() && configured.dim(item) == Shape.VARIABLE) {
            throw TensorRtErrors.invalid(name + " joins dimension " + format.dimension() + " to vectors of "
                    + format.vectorLength() + ", and dims has -1 there (expected: " + shape.dim(format.dimension())
                    + ", as in the engine)");
        }
        if (!tensor.isInput() && isPadded(tensor)) {
            throw TensorRtErrors.unsupported(name + " has padding (expected: for an output, a multiple of "
                    + format.vectorLength() + " in dimension " + format.dimension() + ")");
        }
    }

    private static boolean isPadded(EngineTensor tensor) {
        return !tensor.format().padded(tensor.shape()).equals(tensor.shape());
    }

    /** Returns the dimensions of the inputs that clients pad, as of {@link dev.nereid.spi.PaddedModel#paddedInputs()}. */
    static Map<String, Shape> paddedInputs(List<EngineTensor> tensors, ModelSettings settings) {
        Map<String, Shape> padded = new HashMap<>();
        for (EngineTensor tensor : tensors) {
            if (tensor.isInput() && isPadded(tensor)) {
                Shape shape = tensor.shape();
                long[] dims = new long[shape.rank()];
                Arrays.fill(dims, Shape.VARIABLE);
                int dimension = tensor.format().dimension();
                dims[dimension] = tensor.format().padded(shape).dim(dimension);
                Shape stored = Shape.of(dims);
                padded.put(tensor.name(), settings.batches() ? stored.dropFirst() : stored);
            }
        }
        return padded;
    }
}
