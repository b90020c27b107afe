package dev.nereid.server.config;

import static dev.nereid.server.config.ConfigErrors.invalid;

import inference.BatchInput;
import inference.BatchOutput;
import inference.DataType;
import inference.ModelConfig;
import inference.ModelInput;
import inference.ModelOutput;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** Checks the inputs and outputs that a configuration derives from a whole batch. */
final class BatchTensorValidation {
    private BatchTensorValidation() {}

    static void check(ModelConfig config) {
        String end = " for " + config.getName();
        Set<String> inputs =
                config.getInputList().stream().map(ModelInput::getName).collect(Collectors.toSet());
        Set<String> outputs =
                config.getOutputList().stream().map(ModelOutput::getName).collect(Collectors.toSet());
        for (BatchInput input : config.getBatchInputList()) {
            checkInput(input, inputs, end);
        }
        for (BatchOutput output : config.getBatchOutputList()) {
            checkOutput(output, inputs, outputs, end);
        }
    }

    private static void checkInput(BatchInput input, Set<String> inputs, String end) {
        if (input.getKind() == BatchInput.Kind.UNRECOGNIZED) {
            throw invalid("unknown batch input kind '" + input.getKindValue() + "'" + end);
        }
        if (input.getSourceInputCount() != 1) {
            throw invalid("batch input kind '" + input.getKind() + "' expects 1 source input, got "
                    + input.getSourceInputCount() + end);
        }
        if (input.getDataType() != DataType.TYPE_INT32 && input.getDataType() != DataType.TYPE_FP32) {
            throw invalid("batch input data type must be TYPE_INT32 or TYPE_FP32" + end);
        }
        checkSources(input.getSourceInputList(), inputs, end);
    }

    private static void checkOutput(BatchOutput output, Set<String> inputs, Set<String> outputs, String end) {
        if (output.getKind() == BatchOutput.Kind.UNRECOGNIZED) {
            throw invalid("unknown batch output kind '" + output.getKindValue() + "'" + end);
        }
        if (output.getSourceInputCount() != 1) {
            throw invalid("batch output kind '" + output.getKind() + "' expects 1 source input, got "
                    + output.getSourceInputCount() + end);
        }
        checkSources(output.getSourceInputList(), inputs, end);
        Set<String> seen = new HashSet<>();
        for (String target : output.getTargetNameList()) {
            if (!outputs.contains(target)) {
                throw invalid("unknown target output name '" + target + "'" + end);
            }
            if (!seen.add(target)) {
                throw invalid("target output name '" + target + "' can only be specified once" + end);
            }
        }
    }

    private static void checkSources(List<String> sources, Set<String> inputs, String end) {
        for (String source : sources) {
            if (!inputs.contains(source)) {
                throw invalid("unknown source input name '" + source + "'" + end);
            }
        }
    }
}
