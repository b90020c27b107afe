package dev.nereid.spi.function;

import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.TensorFunction;

/**
 * A {@link TensorFunction} whose name, tensors and batching are declared by annotations. <em>Implemented by
 * backends.</em>
 *
 * <p>The whole plugin is one class:
 *
 * {@snippet :
 * @BackendFunction(name = "twice", maxBatchSize = 8)
 * @Input(name = "INPUT", type = DataType.FP32, dims = -1)
 * @Output(name = "OUTPUT", type = DataType.FP32, dims = -1)
 * public final class Twice implements AnnotatedFunction {
 *     @Override
 *     public void apply(InferenceRequest request, ModelContext model) {
 *         Tensor in = request.requireInput("INPUT");
 *         float[] values = in.floats();
 *         for (int i = 0; i < values.length; i++) {
 *             values[i] *= 2;
 *         }
 *         request.response().putFloats("OUTPUT", in.shape(), values);
 *     }
 * }
 * }
 *
 * @since 1.0
 */
public interface AnnotatedFunction extends TensorFunction {
    /**
     * {@inheritDoc}
     *
     * @return {@link BackendFunction#name()} of the class
     * @throws IllegalStateException if an annotation is missing, or declares what no model can have
     */
    @Override
    default String name() {
        return FunctionDeclaration.of(getClass()).name();
    }

    /**
     * Returns what the annotations of the class declare. A class without {@link Input}, {@link Output} and batching leaves
     * all of it to the configuration, or overrides this method.
     *
     * @return the completion
     * @throws IllegalStateException as {@link #name()}
     */
    @Override
    default ModelCompletion completion() {
        return FunctionDeclaration.of(getClass()).completion();
    }
}
