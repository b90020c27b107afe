package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelInput;
import inference.ModelOutput;
import inference.ModelTensorReshape;
import java.util.List;

/** Converts inputs and outputs of a configuration to tensor specifications and back. */
public final class TensorSpecs {
    private TensorSpecs() {}

    public static TensorSpec of(ModelInput input) {
        TensorSpec spec =
                spec(input.getName(), input.getDataType(), input.getDimsList(), input.hasReshape(), input.getReshape());
        spec = with(spec, TensorSpec.Trait.OPTIONAL, input.getOptional());
        spec = with(spec, TensorSpec.Trait.RAGGED, input.getAllowRaggedBatch());
        spec = with(spec, TensorSpec.Trait.SHAPE_TENSOR, input.getIsShapeTensor());
        return with(spec, TensorSpec.Trait.NON_LINEAR_FORMAT, input.getIsNonLinearFormatIo());
    }

    public static TensorSpec of(ModelOutput output) {
        TensorSpec spec = spec(
                output.getName(), output.getDataType(), output.getDimsList(), output.hasReshape(), output.getReshape());
        spec = with(spec, TensorSpec.Trait.SHAPE_TENSOR, output.getIsShapeTensor());
        return with(spec, TensorSpec.Trait.NON_LINEAR_FORMAT, output.getIsNonLinearFormatIo());
    }

    public static ModelInput input(TensorSpec spec) {
        ModelInput.Builder input = ModelInput.newBuilder()
                .setName(spec.name())
                .setDataType(configType(spec.type()))
                .addAllDims(dims(spec.dims()))
                .setOptional(spec.is(TensorSpec.Trait.OPTIONAL))
                .setAllowRaggedBatch(spec.is(TensorSpec.Trait.RAGGED))
                .setIsShapeTensor(spec.is(TensorSpec.Trait.SHAPE_TENSOR))
                .setIsNonLinearFormatIo(spec.is(TensorSpec.Trait.NON_LINEAR_FORMAT));
        spec.reshape().ifPresent(shape -> input.setReshape(reshape(shape)));
        return input.build();
    }

    public static ModelOutput output(TensorSpec spec) {
        ModelOutput.Builder output = ModelOutput.newBuilder()
                .setName(spec.name())
                .setDataType(configType(spec.type()))
                .addAllDims(dims(spec.dims()))
                .setIsShapeTensor(spec.is(TensorSpec.Trait.SHAPE_TENSOR))
                .setIsNonLinearFormatIo(spec.is(TensorSpec.Trait.NON_LINEAR_FORMAT));
        spec.reshape().ifPresent(shape -> output.setReshape(reshape(shape)));
        return output.build();
    }

    private static TensorSpec spec(
            String name, inference.DataType type, List<Long> dims, boolean isReshaped, ModelTensorReshape reshape) {
        TensorSpec spec = TensorSpec.of(name, type(name, type), shape(name, dims));
        return isReshaped ? spec.withReshape(shape(name, reshape.getShapeList())) : spec;
    }

    private static TensorSpec with(TensorSpec spec, TensorSpec.Trait trait, boolean isSet) {
        return isSet ? spec.with(trait) : spec;
    }

    public static Shape shape(String name, List<Long> dims) {
        try {
            return Shape.of(dims.stream().mapToLong(Long::longValue).toArray());
        } catch (IllegalArgumentException e) {
            throw invalid("tensor '" + name + "' has a wrong shape: " + e.getMessage());
        }
    }

    private static List<Long> dims(Shape shape) {
        return java.util.Arrays.stream(shape.toArray()).boxed().toList();
    }

    private static ModelTensorReshape reshape(Shape shape) {
        return ModelTensorReshape.newBuilder().addAllShape(dims(shape)).build();
    }

    public static DataType type(String name, inference.DataType type) {
        return switch (type) {
            case TYPE_BOOL -> DataType.BOOL;
            case TYPE_UINT8 -> DataType.UINT8;
            case TYPE_UINT16 -> DataType.UINT16;
            case TYPE_UINT32 -> DataType.UINT32;
            case TYPE_UINT64 -> DataType.UINT64;
            case TYPE_INT8 -> DataType.INT8;
            case TYPE_INT16 -> DataType.INT16;
            case TYPE_INT32 -> DataType.INT32;
            case TYPE_INT64 -> DataType.INT64;
            case TYPE_FP16 -> DataType.FP16;
            case TYPE_FP32 -> DataType.FP32;
            case TYPE_FP64 -> DataType.FP64;
            case TYPE_STRING -> DataType.BYTES;
            case TYPE_BF16 -> DataType.BF16;
            case TYPE_INVALID, UNRECOGNIZED -> throw invalid("tensor '" + name + "' must specify 'data_type'");
        };
    }

    private static inference.DataType configType(DataType type) {
        return switch (type) {
            case BOOL -> inference.DataType.TYPE_BOOL;
            case UINT8 -> inference.DataType.TYPE_UINT8;
            case UINT16 -> inference.DataType.TYPE_UINT16;
            case UINT32 -> inference.DataType.TYPE_UINT32;
            case UINT64 -> inference.DataType.TYPE_UINT64;
            case INT8 -> inference.DataType.TYPE_INT8;
            case INT16 -> inference.DataType.TYPE_INT16;
            case INT32 -> inference.DataType.TYPE_INT32;
            case INT64 -> inference.DataType.TYPE_INT64;
            case FP16 -> inference.DataType.TYPE_FP16;
            case FP32 -> inference.DataType.TYPE_FP32;
            case FP64 -> inference.DataType.TYPE_FP64;
            case BYTES -> inference.DataType.TYPE_STRING;
            case BF16 -> inference.DataType.TYPE_BF16;
        };
    }
}
