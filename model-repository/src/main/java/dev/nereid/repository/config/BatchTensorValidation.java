package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import inference.ModelInput;
import inference.ModelOutput;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** Checks the inputs and outputs that a configuration derives from a whole batch. */
final class BatchTensorValidation {
    private final Map<String, TensorSpec> inputs = new LinkedHashMap<>();
    private final Map<String, TensorSpec> outputs = new LinkedHashMap<>();
    private final boolean batches;
    private final String end;

    private BatchTensorValidation(ModelConfig config) {
        for (ModelInput input : config.getInputList()) {
            inputs.put(input.getName(), TensorSpecs.of(input));
        }
        for (ModelOutput output : config.getOutputList()) {
            outputs.put(output.getName(), TensorSpecs.of(output));
        }
        batches = config.getMaxBatchSize() > 0;
        end = " for " + config.getName();
    }

    /** Checks the batch inputs and outputs of a configuration, after its inputs and outputs were checked. */
    static void check(ModelConfig config) {
        BatchTensorValidation validation = new BatchTensorValidation(config);
        Set<String> derived = new HashSet<>();
        for (inference.BatchInput input : config.getBatchInputList()) {
            validation.source(BatchTensors.source(config, input));
            validation.checkInput(BatchTensors.of(config, input), derived);
        }
        Set<String> cut = new HashSet<>();
        for (inference.BatchOutput output : config.getBatchOutputList()) {
            TensorSpec source = validation.source(BatchTensors.source(config, output));
            validation.checkOutput(BatchTensors.of(config, output), source, cut);
        }
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
            throw invalid("target output '" + target.name() + "' of a batch output can not be a shape tensor" + end);
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
