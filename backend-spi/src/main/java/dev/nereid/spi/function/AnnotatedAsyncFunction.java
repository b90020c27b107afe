package dev.nereid.spi.function;

import dev.nereid.spi.AsyncTensorFunction;
import dev.nereid.spi.ModelCompletion;

/**
 * An {@link AsyncTensorFunction} whose name, tensors and batching are declared by annotations. <em>Implemented by
 * backends.</em>
 *
 * <p>The annotations are those of an {@link AnnotatedFunction}; the method returns at once, and the stage that it returns
 * completes when the response is filled.
 *
 * @since 1.0
 */
public interface AnnotatedAsyncFunction extends AsyncTensorFunction {
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
