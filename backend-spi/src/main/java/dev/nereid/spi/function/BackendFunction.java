package dev.nereid.spi.function;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ModelCompletion;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Names the backend of a function, and declares the batching of its models.
 *
 * <p>Belongs on a public class with a public constructor without arguments that implements {@link TensorFunction},
 * {@link AsyncTensorFunction} or {@link StreamingFunction}. {@link Input} and {@link Output} declare the tensors.
 *
 * @since 1.0
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface BackendFunction {
    /** The {@link #maxBatchSize()} that leaves the largest batch to the configuration of each model. */
    int AS_CONFIGURED = -1;

    /**
     * Returns the name in a model's configuration ({@code backend: "…"}).
     *
     * @return the name, as of {@link BackendProvider#name()}: lower-case letters, digits, {@code _} and {@code -}
     */
    String name();

    /**
     * Returns the largest batch that a configuration may ask for. It also applies where a configuration asks for none.
     *
     * @return the size, as of {@link ModelCompletion#proposedMaxBatchSize()} and {@link
     *     ModelCompletion#maxBatchSizeLimit()}: 0 if the tensors have no batch dimension; {@link #AS_CONFIGURED} by
     *     default
     */
    int maxBatchSize() default AS_CONFIGURED;

    /**
     * Says whether models use dynamic batching, unless their configuration chooses a scheduler.
     *
     * @return as {@link ModelCompletion#dynamicBatching()}; {@code false} by default
     */
    boolean dynamicBatching() default false;
}
