package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import inference.ModelConfig;

/** Converts batch inputs and batch outputs of a configuration to their SPI records. */
public final class BatchTensors {
    private BatchTensors() {}

    /** Returns the description of a derived input; fails if its entry in the configuration is wrong. */
    public static BatchInput of(ModelConfig config, inference.BatchInput input) {
        String source = source(config, input);
        if (input.getTargetNameCount() == 0) {
            throw invalid("batch input kind '" + input.getKind() + "' must specify 'target_name'" + end(config));
        }
        return new BatchInput(
                kind(config, input), input.getTargetNameList(), type(config, input.getDataType()), source);
    }

    /** Returns the source of an input, without a check of its names. */
    public static String source(ModelConfig config, inference.BatchInput input) {
        BatchInput.Kind kind = kind(config, input);
        if (input.getSourceInputCount() != 1) {
            throw invalid("batch input kind 'BATCH_" + kind + "' expects 1 source input, got "
                    + input.getSourceInputCount() + end(config));
        }
        type(config, input.getDataType());
        return input.getSourceInput(0);
    }

    /** Returns the description of how outputs are cut; fails if its entry in the configuration is wrong. */
    public static BatchOutput of(ModelConfig config, inference.BatchOutput output) {
        String source = source(config, output);
        if (output.getTargetNameCount() == 0) {
            throw invalid("batch output kind '" + output.getKind() + "' must specify 'target_name'" + end(config));
        }
        return new BatchOutput(kind(config, output), output.getTargetNameList(), source);
    }

    /** Returns the source of outputs, without a check of their names. */
    public static String source(ModelConfig config, inference.BatchOutput output) {
        BatchOutput.Kind kind = kind(config, output);
        if (output.getSourceInputCount() != 1) {
            throw invalid("batch output kind 'BATCH_" + kind + "' expects 1 source input, got "
                    + output.getSourceInputCount() + end(config));
        }
        return output.getSourceInput(0);
    }

    private static BatchInput.Kind kind(ModelConfig config, inference.BatchInput input) {
        return switch (input.getKind()) {
            case BATCH_ELEMENT_COUNT -> BatchInput.Kind.ELEMENT_COUNT;
            case BATCH_ACCUMULATED_ELEMENT_COUNT -> BatchInput.Kind.ACCUMULATED_ELEMENT_COUNT;
            case BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO -> BatchInput.Kind.ACCUMULATED_ELEMENT_COUNT_WITH_ZERO;
            case BATCH_MAX_ELEMENT_COUNT_AS_SHAPE -> BatchInput.Kind.MAX_ELEMENT_COUNT_AS_SHAPE;
            case BATCH_ITEM_SHAPE -> BatchInput.Kind.ITEM_SHAPE;
            case BATCH_ITEM_SHAPE_FLATTEN -> BatchInput.Kind.ITEM_SHAPE_FLATTEN;
            case UNRECOGNIZED -> throw invalid("unknown batch input kind '" + input.getKindValue() + "'" + end(config));
        };
    }

    private static BatchOutput.Kind kind(ModelConfig config, inference.BatchOutput output) {
        return switch (output.getKind()) {
            case BATCH_SCATTER_WITH_INPUT_SHAPE -> BatchOutput.Kind.SCATTER_WITH_INPUT_SHAPE;
            case UNRECOGNIZED ->
                throw invalid("unknown batch output kind '" + output.getKindValue() + "'" + end(config));
        };
    }

    private static DataType type(ModelConfig config, inference.DataType type) {
        if (type == inference.DataType.TYPE_INT32) {
            return DataType.INT32;
        }
        if (type == inference.DataType.TYPE_FP32) {
            return DataType.FP32;
        }
        throw invalid("batch input data type must be TYPE_INT32 or TYPE_FP32" + end(config));
    }

    private static String end(ModelConfig config) {
        return " for " + config.getName();
    }
}
