package dev.nereid.server.request;

import dev.nereid.api.InputTensor;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
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
    private final boolean hasBatchDimension;

    InputCheck(String model, boolean modelBatches, TensorSpec spec) {
        this.model = model;
        this.modelBatches = modelBatches;
        this.spec = spec;
        typeName = spec.type().name();
        dims = spec.dims().toArray();
        reshape = spec.reshape().map(Shape::toArray).orElse(null);
        hasBatchDimension = modelBatches && !spec.is(TensorSpec.Trait.SHAPE_TENSOR);
    }

    String name() {
        return spec.name();
    }

    boolean isOptional() {
        return spec.is(TensorSpec.Trait.OPTIONAL);
    }

    /** Whether the first dimension of the input is the batch. */
    boolean hasBatchDimension() {
        return hasBatchDimension;
    }

    /**
     * Turns a claim into a tensor.
     *
     * @param batch the size of the batch; 0 is refused here, after the checks that the reference makes before
     */
    NamedTensor check(String id, InputTensor claim, long batch) {
        InputTensor.checkRank(claim.rank());
        if (!claim.datatype().equals(typeName)) {
            throw RequestErrors.dataType(id, claim, model, spec.type());
        }
        checkDims(id, claim);
        boolean prepend = hasBatchDimension && batch != 0;
        long[] shape = backendShape(claim, prepend ? batch : 0, prepend);
        checkData(id, claim, shape);
        if (hasBatchDimension && batch == 0) {
            throw RequestErrors.emptyBatch(id, model);
        }
        return new NamedTensor(spec.name(), Tensor.of(spec.type(), Shape.of(shape), claim.data(), claim.place()));
    }

    private void checkDims(String id, InputTensor claim) {
        int first = hasBatchDimension ? 1 : 0;
        boolean matches = claim.rank() == dims.length + first;
        for (int i = 0; matches && i < dims.length; i++) {
            long given = claim.dim(i + first);
            if (given == Shape.VARIABLE) {
                throw RequestErrors.unspecifiedDimension(id, claim, model);
            }
            matches = dims[i] == Shape.VARIABLE || dims[i] == given;
        }
        if (!matches) {
            throw RequestErrors.shape(id, claim, model, spec.dims(), modelBatches);
        }
    }

    /** The shape in which the backend sees the input: variable dimensions take the claimed sizes one after another. */
    private long[] backendShape(InputTensor claim, long batch, boolean prepend) {
        int claimFirst = hasBatchDimension ? 1 : 0;
        int first = prepend ? 1 : 0;
        long[] target = reshape == null ? dims : reshape;
        long[] shape = new long[target.length + first];
        if (prepend) {
            shape[0] = batch;
        }
        int next = 0;
        for (int i = 0; i < target.length; i++) {
            if (reshape == null) {
                shape[i + first] = claim.dim(i + claimFirst);
            } else if (target[i] == Shape.VARIABLE) {
                while (dims[next] != Shape.VARIABLE) {
                    next++;
                }
                shape[i + first] = claim.dim(next++ + claimFirst);
            } else {
                shape[i + first] = target[i];
            }
        }
        return shape;
    }

    private void checkData(String id, InputTensor claim, long[] shape) {
        if (spec.type() == DataType.BYTES) {
            long elements = InputTensor.elementCount(spec.name(), shape);
            if (claim.place().isHost()) {
                BytesFraming.check(id, spec.name(), model, claim.data(), elements);
            }
            return;
        }
        long expected = InputTensor.byteSize(spec.name(), spec.type(), shape);
        long given = claim.data().byteSize();
        if (given != expected) {
            throw RequestErrors.byteSize(id, spec.name(), model, expected, given);
        }
    }
}
