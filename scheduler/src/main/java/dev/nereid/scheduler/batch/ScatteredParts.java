package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Shape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Computes the parts of batch outputs that follow the shapes of an input. Static functions only.
 *
 * <p>The output holds the parts one after another, in any shape. A part has the dimensions of the configuration; a
 * variable one is replaced by the input's dimension of the same index.
 */
final class ScatteredParts {
    private ScatteredParts() {}

    /** Returns the shape of the part of one request, as the backend sees it. */
    static Shape shape(ModelScope model, OutputSpec output, String source, ScheduledRequest request) {
        Shape dims = output.tensor().backendDims();
        Shape whole = output.batched() ? dims.prepend(Shape.VARIABLE) : dims;
        Shape given = request.input(source).shape();
        Shape shape = fill(whole, given);
        if (shape == null) {
            throw SchedulerErrors.output(
                    model.settings(),
                    output.tensor().name(),
                    "shape " + whole + " cannot be taken from input '" + source + "' of shape " + given);
        }
        return shape;
    }

    /**
     * Returns the shape of an output of a batch of one in the response of its request.
     *
     * @param output the output; {@code null} if the model has none of the name
     * @param shape the shape as the backend gave it
     */
    static Shape ofSingle(ModelScope model, @Nullable OutputSpec output, List<ScheduledRequest> single, Shape shape) {
        String source = output == null ? null : output.source();
        if (output == null || source == null) {
            return shape;
        }
        check(model, output, source, single, shape);
        return shape(model, output, source, single.getFirst());
    }

    /** Replaces an output's variable dimensions by those of a source; {@code null} if the source has too few. */
    static @Nullable Shape fill(Shape output, Shape source) {
        long[] dims = output.toArray();
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] == Shape.VARIABLE) {
                if (i >= source.rank()) {
                    return null;
                }
                dims[i] = source.dim(i);
            }
        }
        return Shape.of(dims);
    }

    /** Throws unless an output has as many elements as its parts together. */
    static void check(
            ModelScope model, OutputSpec output, String source, List<ScheduledRequest> requests, Shape shape) {
        if (!shape.isConcrete()) {
            throw error(model, output, "shape " + shape + " (expected: no variable dimension)");
        }
        try {
            long expected = 0;
            for (ScheduledRequest request : requests) {
                Shape part = shape(model, output, source, request);
                expected = Math.addExact(expected, part.elementCount());
            }
            if (shape.elementCount() != expected) {
                throw error(
                        model,
                        output,
                        "shape " + shape + " (expected: " + expected + " elements, as input '" + source
                                + "' requires)");
            }
        } catch (ArithmeticException e) {
            throw error(model, output, "shape " + shape + " (expected: a size that fits 64 bits)");
        }
    }

    /** Returns the offset of the part of each request, in elements. The total follows at the end. */
    static long[] offsets(ModelScope model, OutputSpec output, String source, List<ScheduledRequest> requests) {
        long[] offsets = new long[requests.size() + 1];
        for (int i = 0; i < requests.size(); i++) {
            offsets[i + 1] =
                    offsets[i] + shape(model, output, source, requests.get(i)).elementCount();
        }
        return offsets;
    }

    private static BackendException error(ModelScope model, OutputSpec output, String problem) {
        return SchedulerErrors.output(model.settings(), output.tensor().name(), problem);
    }
}
