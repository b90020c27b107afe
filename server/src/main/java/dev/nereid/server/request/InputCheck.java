package dev.nereid.server.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * Checks one input of a request against the configuration and converts it to a tensor. Immutable; everything is
 * looked up beforehand.
 */
final class InputCheck {
    private final String model;
    private final boolean modelBatches;
    private final TensorSpec spec;
    private final String typeName;
    private final long[] dims;
    private final long @Nullable [] reshape;

    /** The dimensions of its memory, variable if equal to the input's dimension; {@code null} without padding. */
    private final long @Nullable [] padded;

    private final boolean hasBatchDimension;

    /**
     * Prepares the check of an input.
     *
     * @param padded the dimensions of its memory, variable if equal to the input's dimension; {@code null} if all are
     *     equal
     * @throws InferenceException if there are not as many as the input has
     */
    InputCheck(String model, boolean modelBatches, TensorSpec spec, @Nullable Shape padded) {
        this.model = model;
        this.modelBatches = modelBatches;
        this.spec = spec;
        typeName = spec.type().name();
        dims = spec.dims().toArray();
        reshape = spec.reshape().map(Shape::toArray).orElse(null);
        this.padded = padded == null ? null : padded.toArray();
        if (padded != null && padded.rank() != spec.backendDims().rank()) {
            throw new InferenceException(
                    ErrorCode.INTERNAL,
                    "input '" + spec.name() + "' of model '" + model + "': padded to " + padded + " (expected: "
                            + spec.backendDims().rank() + " dimensions, as the input has)");
        }
        hasBatchDimension = modelBatches && !spec.is(TensorSpec.Trait.SHAPE_TENSOR);
    }

    String name() {
        return spec.name();
    }

    boolean isOptional() {
        return spec.is(TensorSpec.Trait.OPTIONAL);
    }

    /** Returns whether the first dimension of the input is the batch. */
    boolean hasBatchDimension() {
        return hasBatchDimension;
    }

    /**
     * Checks an input as received and converts it to a tensor.
     *
     * @param batch the size of the batch; 0 is refused here, after the checks that the reference makes before
     */
    NamedTensor check(String id, InputTensor input, long batch) {
        InputTensor.checkRank(input.name(), input.rank());
        if (!input.datatype().equals(typeName)) {
            throw RequestErrors.dataType(id, input, model, spec.type());
        }
        checkDims(id, input);
        boolean prepend = hasBatchDimension && batch != 0;
        long[] shape = backendShape(input, prepend ? batch : 0, prepend);
        checkData(id, input, shape);
        if (hasBatchDimension && batch == 0) {
            throw RequestErrors.emptyBatch(id, model);
        }
        Tensor tensor = Tensor.of(spec.name(), spec.type(), Shape.of(shape), input.data(), input.place());
        return new NamedTensor(spec.name(), input.fence().map(tensor::withFence).orElse(tensor));
    }

    private void checkDims(String id, InputTensor input) {
        int first = hasBatchDimension ? 1 : 0;
        boolean matches = input.rank() == dims.length + first;
        for (int i = 0; matches && i < dims.length; i++) {
            long actual = input.dim(i + first);
            if (actual == Shape.VARIABLE) {
                throw RequestErrors.unspecifiedDimension(id, input, model);
            }
            matches = dims[i] == Shape.VARIABLE || dims[i] == actual;
        }
        if (!matches) {
            throw RequestErrors.shape(id, input, model, spec.dims(), modelBatches);
        }
    }

    /**
     * Returns the shape in which the backend sees the input. Variable dimensions take the received sizes one after
     * another.
     */
    private long[] backendShape(InputTensor input, long batch, boolean prepend) {
        int inputFirst = hasBatchDimension ? 1 : 0;
        int first = prepend ? 1 : 0;
        long[] target = reshape == null ? dims : reshape;
        long[] shape = new long[target.length + first];
        if (prepend) {
            shape[0] = batch;
        }
        int next = 0;
        for (int i = 0; i < target.length; i++) {
            if (reshape == null) {
                shape[i + first] = input.dim(i + inputFirst);
            } else if (target[i] == Shape.VARIABLE) {
                while (dims[next] != Shape.VARIABLE) {
                    next++;
                }
                shape[i + first] = input.dim(next++ + inputFirst);
            } else {
                shape[i + first] = target[i];
            }
        }
        return padded == null ? shape : storedDims(shape, first);
    }

    /**
     * Returns the dimensions of the memory of the input.
     *
     * @param shape the dimensions that the backend sees
     * @param first the number of dimensions before the dimensions of an item
     */
    long[] storedDims(long[] shape, int first) {
        if (padded == null || padded.length != shape.length - first) {
            return shape;
        }
        long[] stored = shape.clone();
        for (int i = 0; i < padded.length; i++) {
            if (padded[i] != Shape.VARIABLE) {
                stored[i + first] = padded[i];
            }
        }
        return stored;
    }

    private void checkData(String id, InputTensor input, long[] shape) {
        if (spec.type() == DataType.BYTES) {
            long elements = InputTensor.elementCount(spec.name(), shape);
            if (input.place().isHost()) {
                BytesFraming.check(id, spec.name(), model, input.data(), elements);
            }
            return;
        }
        long expected = InputTensor.byteSize(spec.name(), spec.type(), shape);
        long actual = input.data().byteSize();
        if (actual != expected) {
            throw RequestErrors.byteSize(id, spec.name(), model, expected, actual);
        }
    }

    /** Checks that a tensor of byte strings has as many strings as its shape. */
    private static final class BytesFraming {
        private static final ValueLayout.OfInt LENGTH =
                ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
        private static final int LENGTH_BYTES = Integer.BYTES;

        private BytesFraming() {}

        /**
         * Walks over the strings. A string that reaches beyond the end of the data is refused, unlike by the reference:
         * native code must not see such a length.
         *
         * @param data memory that Java code may read
         * @param expected the number of strings
         */
        static void check(String id, String input, String model, MemorySegment data, long expected) {
            long size = data.byteSize();
            long position = 0;
            long strings = 0;
            while (position < size) {
                long available = size - position;
                if (available < LENGTH_BYTES) {
                    throw RequestErrors.cutLength(id, input, model, available);
                }
                if (strings == expected) {
                    throw RequestErrors.tooManyStrings(id, input, model, expected);
                }
                strings++;
                long length = Integer.toUnsignedLong(data.get(LENGTH, position));
                if (length > available - LENGTH_BYTES) {
                    throw RequestErrors.cutString(id, input, model, length, available - LENGTH_BYTES);
                }
                position += LENGTH_BYTES + length;
            }
            if (strings != expected) {
                throw RequestErrors.tooFewStrings(id, input, model, expected, strings);
            }
        }
    }
}
