package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import inference.DataType;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * A tensor of an ensemble as one model has it. Immutable.
 *
 * @param dims its dimensions without batch dimension
 */
record StepTensor(String model, DataType type, List<Long> dims, boolean batches) {
    /**
     * Checks that two models mean the same tensor. Shapes fit without batch dimension or with it, so that a model with
     * batch dimension and one without can be connected.
     *
     * @param place the beginning of the error
     */
    void check(StepTensor other, String place) {
        if (type != other.type) {
            throw invalid(place + "inconsistent data type: " + type.name() + inferred(other, other.type.name()));
        }
        if (!fits(dims, other.dims) && !fits(fullDims(), other.fullDims())) {
            throw invalid(place + "inconsistent shape: " + text(fullDims()) + inferred(other, text(other.fullDims())));
        }
    }

    private String inferred(StepTensor other, String value) {
        return " is inferred from model " + model + " while " + value + " is inferred from model " + other.model;
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }

    private List<Long> fullDims() {
        return batches ? Stream.concat(Stream.of(-1L), dims.stream()).toList() : dims;
    }

    private static String text(List<Long> dims) {
        return Quoted.dims(dims.stream().mapToLong(Long::longValue).toArray());
    }

    private static boolean fits(List<Long> first, List<Long> second) {
        return first.size() == second.size()
                && LongStream.range(0, first.size()).allMatch(i -> fits(first.get((int) i), second.get((int) i)));
    }

    private static boolean fits(long first, long second) {
        return first == second || first == -1 || second == -1;
    }
}
