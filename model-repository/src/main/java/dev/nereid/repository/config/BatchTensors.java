package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import inference.ModelInput;
import inference.ModelOutput;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** Checks batch inputs and batch outputs of a configuration, and converts them to their SPI records. */
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
    private static String source(ModelConfig config, inference.BatchInput input) {
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
    private static String source(ModelConfig config, inference.BatchOutput output) {
        BatchOutput.Kind kind = kind(config, output);
        if (output.getSourceInputCount() != 1) {
            throw invalid("batch output kind 'BATCH_" + kind + "' expects 1 source input, got "
                    + output.getSourceInputCount() + end(config));
        }
        return output.getSourceInput(0);
    }

    /** Checks the batch inputs and outputs of a configuration, after its inputs and outputs were checked. */
    static void check(ModelConfig config) {
        Declared declared = new Declared(config);
        Set<String> derived = new HashSet<>();
        for (inference.BatchInput input : config.getBatchInputList()) {
            declared.source(source(config, input));
            declared.checkInput(of(config, input), derived);
        }
        Set<String> cut = new HashSet<>();
        for (inference.BatchOutput output : config.getBatchOutputList()) {
            TensorSpec source = declared.source(source(config, output));
            declared.checkOutput(of(config, output), source, cut);
        }
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

    /** The inputs and outputs of a configuration, with which its batch inputs and batch outputs are compared. Immutable. */
    private static final class Declared {
        private final Map<String, TensorSpec> inputs = new LinkedHashMap<>();
        private final Map<String, TensorSpec> outputs = new LinkedHashMap<>();
        private final boolean batches;
        private final String end;

        private Declared(ModelConfig config) {
            for (ModelInput input : config.getInputList()) {
                inputs.put(input.getName(), TensorSpecs.of(input));
            }
            for (ModelOutput output : config.getOutputList()) {
                outputs.put(output.getName(), TensorSpecs.of(output));
            }
            batches = config.getMaxBatchSize() > 0;
            end = " for " + config.getName();
        }

        private void checkInput(BatchInput input, Set<String> derived) {
            for (String target : input.names()) {
                if (inputs.containsKey(target)) {
                    throw invalid("batch input target name '" + target + "' is an input already" + end);
                }
                if (!derived.add(target)) {
                    throw invalid("batch input target name '" + target + "' can only be specified once" + end);
                }
            }
        }

        private void checkOutput(BatchOutput output, TensorSpec source, Set<String> cut) {
            for (String name : output.names()) {
                TensorSpec target = outputs.get(name);
                if (target == null) {
                    throw invalid("unknown target output name '" + name + "'" + end);
                }
                if (!cut.add(name)) {
                    throw invalid("target output name '" + name + "' can only be specified once" + end);
                }
                checkCut(target, source);
            }
        }

        private TensorSpec source(String name) {
            TensorSpec source = inputs.get(name);
            if (source == null) {
                throw invalid("unknown source input name '" + name + "'" + end);
            }
            return source;
        }

        /** Checks the variable dimensions of an output. Its source has to have a variable dimension in the same place. */
        private void checkCut(TensorSpec target, TensorSpec source) {
            if (target.is(TensorSpec.Trait.SHAPE_TENSOR)) {
                throw invalid(
                        "target output '" + target.name() + "' of a batch output can not be a shape tensor" + end);
            }
            if (batches && source.is(TensorSpec.Trait.SHAPE_TENSOR)) {
                throw invalid("source input '" + source.name() + "' of a batch output can not be a shape tensor" + end);
            }
            Shape dims = target.backendDims();
            for (int i = source.backendDims().rank(); i < dims.rank(); i++) {
                if (dims.dim(i) == Shape.VARIABLE) {
                    throw invalid("target output '" + target.name() + "' of shape " + dims
                            + " has a variable-size dimension where its source input '" + source.name() + "' of shape "
                            + source.backendDims() + " has none" + end);
                }
            }
        }
    }
}
