package dev.nereid.guide;

import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.function.TensorFunction;
import java.lang.foreign.ValueLayout;

/** Returns OUTPUT = 2 × INPUT. */
final class Twice implements TensorFunction {
    @Override
    public String name() {
        return "twice";
    }

    @Override
    public ModelCompletion completion() {
        return ModelCompletion.EMPTY
                .withProposedMaxBatchSize(8)
                .withMaxBatchSizeLimit(8)
                .withInput("INPUT", DataType.FP32, Shape.VARIABLE)
                .withOutput("OUTPUT", DataType.FP32, Shape.VARIABLE);
    }

    @Override
    public void apply(InferenceRequest request, ModelContext model) {
        Tensor in = request.requireInput("INPUT");
        Tensor out = request.response().allocate("OUTPUT", DataType.FP32, in.shape());
        for (long at = 0; at < in.byteSize(); at += Float.BYTES) {
            float value = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
            out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, 2 * value);
        }
    }
}
