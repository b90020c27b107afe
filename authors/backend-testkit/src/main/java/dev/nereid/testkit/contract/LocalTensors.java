package dev.nereid.testkit.contract;

import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Copies, cuts and compares tensors of local executions. Static functions only. */
final class LocalTensors {
    /** The relative difference of numbers with a fraction that counts as rounding. */
    private static final double TOLERANCE = 1e-4;

    private LocalTensors() {}

    /** Returns the number of items of a request. */
    static int items(ModelSettings settings, Map<String, Tensor> inputs) {
        if (!settings.batches() || inputs.isEmpty()) {
            return 1;
        }
        Shape first = inputs.values().iterator().next().shape();
        return first.rank() == 0 ? 1 : Math.toIntExact(first.dim(0));
    }

    static Tensor copy(Tensor tensor) {
        MemorySegment data = Arena.ofAuto().allocate(Math.max(1, tensor.byteSize()), Long.BYTES);
        MemorySegment.copy(tensor.data(), 0, data, 0, tensor.byteSize());
        return Tensor.of(tensor.type(), tensor.shape(), data.asSlice(0, tensor.byteSize()));
    }

    static Map<String, Tensor> copies(Map<String, Tensor> tensors) {
        Map<String, Tensor> copies = new LinkedHashMap<>();
        tensors.forEach((name, tensor) -> copies.put(name, copy(tensor)));
        return copies;
    }

    /** Returns the part of one request in the outputs for its batch. */
    static Map<String, Tensor> parts(ModelSettings settings, FakeBatch batch, List<FakeRequest> requests, int place) {
        Map<String, Tensor> parts = new LinkedHashMap<>();
        batch.outputs().forEach((name, tensor) -> {
            Optional<BatchOutput> cut = settings.batchOutputs().stream()
                    .filter(candidate -> candidate.names().contains(name))
                    .findFirst();
            boolean whole = requests.size() == 1 && cut.isEmpty();
            Optional<Tensor> part = cut.isPresent()
                    ? Optional.of(
                            cut(settings, tensor, settings.output(name).orElseThrow(), cut.get(), requests, place))
                    : whole ? Optional.of(copy(tensor)) : part(Optional.of(tensor), requests, place);
            part.ifPresent(found -> parts.put(name, found));
        });
        return parts;
    }

    /** Returns the items of one request. */
    static Optional<Tensor> part(Optional<Tensor> batch, List<FakeRequest> requests, int place) {
        if (batch.isEmpty() || batch.get().shape().rank() == 0) {
            return batch.map(LocalTensors::copy);
        }
        Tensor tensor = batch.get();
        long first = requests.subList(0, place).stream()
                .mapToLong(FakeRequest::batchSize)
                .sum();
        long items = requests.get(place).batchSize();
        long perItem = tensor.shape().withFirst(1).elementCount();
        return Optional.of(slice(tensor, first * perItem, tensor.shape().withFirst(items)));
    }

    /** Returns the part of one request in an output that the server cuts by the shapes of an input. */
    private static Tensor cut(
            ModelSettings settings,
            Tensor tensor,
            TensorSpec output,
            BatchOutput cut,
            List<FakeRequest> requests,
            int place) {
        Shape dims = output.backendDims();
        Shape whole = settings.batches() ? dims.prepend(Shape.VARIABLE) : dims;
        long offset = 0;
        for (int i = 0; ; i++) {
            long[] part = whole.toArray();
            Shape source = requests.get(i).input(cut.source()).orElseThrow().shape();
            for (int at = 0; at < part.length; at++) {
                part[at] = part[at] == Shape.VARIABLE ? source.dim(at) : part[at];
            }
            if (i == place) {
                return slice(tensor, offset, Shape.of(part));
            }
            offset += Shape.of(part).elementCount();
        }
    }

    private static Tensor slice(Tensor tensor, long firstElement, Shape shape) {
        if (!tensor.type().isFixedSize()) {
            int first = Math.toIntExact(firstElement);
            return Tensor.ofByteStrings(
                    shape, tensor.byteStrings().subList(first, first + Math.toIntExact(shape.elementCount())));
        }
        long size = tensor.type().byteSize();
        return copy(Tensor.of(
                tensor.type(), shape, tensor.data().asSlice(firstElement * size, shape.elementCount() * size)));
    }

    /** Fails if an output is not in the configuration, or differs from it in type or shape. */
    static void check(ModelSettings settings, long items, Map<String, Tensor> outputs) {
        outputs.forEach((name, tensor) -> {
            TensorSpec spec = settings.output(name)
                    .orElseThrow(() -> new AssertionError("output '" + name
                            + "': not in the configuration (expected: one of " + settings.outputs() + ")"));
            if (spec.type() != tensor.type()) {
                throw new AssertionError(
                        "output '" + name + "': " + tensor.type() + " (expected: " + spec.type() + ")");
            }
            boolean batched = settings.batches() && !spec.is(TensorSpec.Trait.SHAPE_TENSOR);
            Shape expected = batched ? spec.backendDims().prepend(items) : spec.backendDims();
            if (!expected.accepts(tensor.shape())) {
                throw new AssertionError(
                        "output '" + name + "': shape " + tensor.shape() + " (expected: " + expected + ")");
            }
        });
    }

    /** Fails if a tensor differs from the expected one. */
    static void checkEqual(String what, Tensor expected, Tensor actual) {
        if (expected.type() != actual.type()
                || !expected.shape().equals(actual.shape())
                || !hasEqual(expected, actual)) {
            throw new AssertionError(what + ": " + describe(actual) + " (expected: " + describe(expected) + ")");
        }
    }

    private static boolean hasEqual(Tensor expected, Tensor actual) {
        return switch (expected.type()) {
            case FP32 -> {
                float[] left = expected.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
                float[] right = actual.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
                boolean equal = true;
                for (int i = 0; i < left.length; i++) {
                    equal &= isClose(left[i], right[i]);
                }
                yield equal;
            }
            case FP64 -> {
                double[] left = expected.data().toArray(ValueLayout.JAVA_DOUBLE_UNALIGNED);
                double[] right = actual.data().toArray(ValueLayout.JAVA_DOUBLE_UNALIGNED);
                boolean equal = true;
                for (int i = 0; i < left.length; i++) {
                    equal &= isClose(left[i], right[i]);
                }
                yield equal;
            }
            default -> expected.data().mismatch(actual.data()) < 0;
        };
    }

    private static boolean isClose(double expected, double actual) {
        return Double.compare(expected, actual) == 0
                || Math.abs(expected - actual) <= TOLERANCE * Math.max(1, Math.abs(expected));
    }

    private static String describe(Tensor tensor) {
        String content = switch (tensor.type()) {
            case FP32 -> java.util.Arrays.toString(tensor.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED));
            case INT32 -> java.util.Arrays.toString(tensor.data().toArray(ValueLayout.JAVA_INT_UNALIGNED));
            case BYTES -> tensor.strings().toString();
            default -> tensor.byteSize() + " bytes";
        };
        return tensor.type() + " " + tensor.shape() + " " + content;
    }
}
