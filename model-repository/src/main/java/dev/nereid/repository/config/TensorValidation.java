package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import inference.DataType;
import inference.ModelConfig;
import inference.ModelInput;
import inference.ModelOutput;
import inference.ModelTensorReshape;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;

/** Checks the inputs and outputs of a configuration. */
final class TensorValidation {
    private static final String TENSORRT = "tensorrt_plan";
    private static final long VARIABLE = -1;

    /** Common fields of inputs and outputs. */
    private record Declared(String kind, String name, DataType type, List<Long> dims) {
        String prefix() {
            return "model " + kind + " '" + name + "' ";
        }
    }

    private TensorValidation() {}

    static void check(ModelConfig config) {
        String end = " for " + config.getName();
        boolean batches = config.getMaxBatchSize() > 0;
        boolean isTensorRt = config.getPlatform().equals(TENSORRT);
        for (ModelInput input : config.getInputList()) {
            Declared declared = new Declared("input", input.getName(), input.getDataType(), input.getDimsList());
            checkDeclared(declared, end);
            if (input.hasReshape()) {
                checkReshape(declared, input.getReshape(), batches, end);
            }
            checkImage(input, end);
            checkTraits(declared, input.getIsShapeTensor(), input.getIsNonLinearFormatIo(), isTensorRt, end);
        }
        for (ModelOutput output : config.getOutputList()) {
            Declared declared = new Declared("output", output.getName(), output.getDataType(), output.getDimsList());
            checkDeclared(declared, end);
            if (output.hasReshape()) {
                checkReshape(declared, output.getReshape(), batches, end);
            }
            checkTraits(declared, output.getIsShapeTensor(), output.getIsNonLinearFormatIo(), isTensorRt, end);
        }
    }

    /** Checks names, types and dimensions as far as they are given, for a configuration that is not complete. */
    static void checkGiven(ModelConfig config) {
        String end = " for " + config.getName();
        for (ModelInput input : config.getInputList()) {
            checkGiven(new Declared("input", input.getName(), input.getDataType(), input.getDimsList()), end);
        }
        for (ModelOutput output : config.getOutputList()) {
            checkGiven(new Declared("output", output.getName(), output.getDataType(), output.getDimsList()), end);
        }
    }

    private static void checkDeclared(Declared tensor, String end) {
        checkName(tensor, end);
        checkType(tensor, end);
        checkDimensions(tensor, end);
        if (tensor.dims().isEmpty()) {
            throw invalid(tensor.prefix() + "must specify 'dims'" + end);
        }
    }

    private static void checkGiven(Declared tensor, String end) {
        checkName(tensor, end);
        if (tensor.type() != DataType.TYPE_INVALID) { // which its backend may complete
            checkType(tensor, end);
        }
        checkDimensions(tensor, end);
    }

    private static void checkName(Declared tensor, String end) {
        if (tensor.name().isEmpty()) {
            throw invalid("model " + tensor.kind() + " must specify 'name'" + end);
        }
    }

    private static void checkType(Declared tensor, String end) {
        if (tensor.type() == DataType.TYPE_INVALID || tensor.type() == DataType.UNRECOGNIZED) {
            throw invalid(tensor.prefix() + "must specify 'data_type'" + end);
        }
    }

    private static void checkDimensions(Declared tensor, String end) {
        if (!areDimensions(tensor.dims())) {
            throw invalid(tensor.prefix()
                    + "dimension must be integer >= 1, or -1 to indicate a variable-size dimension" + end);
        }
    }

    private static void checkReshape(Declared tensor, ModelTensorReshape reshape, boolean batches, String end) {
        List<Long> shape = reshape.getShapeList();
        if (shape.isEmpty() && !batches) {
            throw invalid(tensor.prefix()
                    + "cannot have empty reshape for non-batching model as scalar tensors are not supported" + end);
        }
        if (!areDimensions(shape)) {
            throw invalid(tensor.prefix()
                    + "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension" + end);
        }
        List<BigInteger> had = runs(tensor.dims());
        List<BigInteger> has = runs(shape);
        boolean areBothVariable = had.size() > 1 && has.size() > 1;
        if (areBothVariable && had.size() != has.size()) {
            throw invalid(
                    tensor.prefix() + "has different number of variable-size dimensions for dims and reshape" + end);
        }
        if (!had.equals(has)) {
            throw invalid(tensor.prefix() + "has different size for dims and reshape" + end);
        }
    }

    private static boolean areDimensions(List<Long> dims) {
        return dims.stream().allMatch(dim -> dim >= 1 || dim == VARIABLE);
    }

    /**
     * Returns the products of the dimensions before, between and after the variable ones. For [2,4,-1,6] they are 8 and
     * 6.
     */
    private static List<BigInteger> runs(List<Long> dims) {
        List<BigInteger> runs = new ArrayList<>();
        BigInteger product = BigInteger.ONE;
        for (long dim : dims) {
            if (dim == VARIABLE) {
                runs.add(product);
                product = BigInteger.ONE;
            } else {
                product = product.multiply(BigInteger.valueOf(dim));
            }
        }
        runs.add(product);
        return runs;
    }

    private static void checkImage(ModelInput input, String end) {
        boolean isImage = input.getFormat() == ModelInput.Format.FORMAT_NHWC
                || input.getFormat() == ModelInput.Format.FORMAT_NCHW;
        if (isImage && input.getDimsCount() != 3) {
            throw invalid("model input NHWC/NCHW require 3 dims" + end);
        }
    }

    private static void checkTraits(
            Declared tensor, boolean isShapeTensor, boolean isNonLinear, boolean isTensorRt, String end) {
        if (isShapeTensor && !isTensorRt) {
            throw invalid("shape tensors are only supported for TensorRT platform" + end);
        }
        if (isNonLinear && !isTensorRt) {
            throw invalid("Non-linear IO format is only supported for the TensorRT platform" + end);
        }
        if (isNonLinear && tensor.dims().size() != 3) {
            throw invalid("Non-linear IO format " + tensor.kind() + " requires 3 dims" + end);
        }
    }
}
