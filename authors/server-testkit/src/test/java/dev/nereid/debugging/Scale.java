package dev.nereid.debugging;

import dev.nereid.spi.*;
import dev.nereid.spi.function.*;
import java.lang.System.Logger.Level;

/** Returns OUTPUT = 2 × INPUT. */
@BackendFunction(name = "scale", maxBatchSize = 8)
@Input(name = "INPUT", type = DataType.FP32, dims = -1)
@Output(name = "OUTPUT", type = DataType.FP32, dims = -1)
public final class Scale implements TensorFunction {
    @Override
    public void apply(InferenceRequest request, ModelContext model) {
        Tensor in = request.requireInput("INPUT");
        float[] values = in.floats();
        for (int i = 0; i < values.length; i++) {
            values[i] = scaled(values[i]);
        }
        model.logger().log(Level.DEBUG, "scaled {0} values", values.length);
        request.response().putFloats("OUTPUT", in.shape(), values);
    }

    private static float scaled(float value) {
        return 2 * value;
    }
}
