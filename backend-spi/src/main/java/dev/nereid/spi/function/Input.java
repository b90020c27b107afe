package dev.nereid.spi.function;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Declares one input of a {@linkplain BackendFunction function}; once for each input, in their order.
 *
 * @since 1.0
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
@Repeatable(Input.List.class)
public @interface Input {
    /**
     * Returns the name of the tensor.
     *
     * @return the name, unique among the inputs
     */
    String name();

    /**
     * Returns the type of the elements.
     *
     * @return the type
     */
    DataType type();

    /**
     * Returns the dimensions without the batch dimension.
     *
     * @return at least one dimension, each 1 or more, or {@link Shape#VARIABLE} (−1) where any size will do
     */
    long[] dims();

    /**
     * Says whether a request may leave the input out.
     *
     * @return whether it is {@link TensorSpec.Trait#OPTIONAL}; {@code false} by default
     */
    boolean optional() default false;

    /**
     * Says whether requests of one batch may differ in the shape of the input.
     *
     * @return whether it is {@link TensorSpec.Trait#RAGGED}; {@code false} by default
     */
    boolean ragged() default false;

    /** Contains the annotations of a class with several inputs; the compiler writes it. */
    @Documented
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.TYPE)
    @interface List {
        /**
         * Returns the annotations.
         *
         * @return the inputs in their order
         */
        Input[] value();
    }
}
