package dev.nereid.spi.function;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Declares one output of a {@linkplain BackendFunction function}; once for each output, in their order.
 *
 * @since 1.0
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
@Repeatable(Output.List.class)
public @interface Output {
    /**
     * Returns the name of the tensor.
     *
     * @return the name, unique among the outputs
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

    /** Contains the annotations of a class with several outputs; the compiler writes it. */
    @Documented
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.TYPE)
    @interface List {
        /**
         * Returns the annotations.
         *
         * @return the outputs in their order
         */
        Output[] value();
    }
}
