package ${package};

import dev.nereid.spi.*;
import dev.nereid.spi.function.*;

/** Returns OUTPUT = 2 * INPUT. */
@BackendFunction(name = "${artifactId}", maxBatchSize = 8)
@Input(name = "INPUT", type = DataType.FP32, dims = -1)
@Output(name = "OUTPUT", type = DataType.FP32, dims = -1)
public final class ${className} implements TensorFunction {
    @Override
    public void apply(InferenceRequest request, ModelContext model) {
        Tensor input = request.requireInput("INPUT");
        float[] values = input.floats();
        for (int i = 0; i < values.length; i++) {
            values[i] = 2 * values[i];
        }
        request.response().putFloats("OUTPUT", input.shape(), values);
    }
}
