package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.List;

/** Computes the shape of inputs that follow one another along the first dimension. Static functions only. */
final class JoinedShape {
    private JoinedShape() {}

    /**
     * Returns the shape of an input of all requests.
     *
     * @param ragged whether the elements of all requests form one dimension
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if types or further dimensions differ
     */
    static Shape of(ModelScope model, String input, List<Tensor> parts, boolean ragged) {
        Tensor first = parts.getFirst();
        long length = 0;
        for (Tensor part : parts) {
            check(model, input, first, part, ragged);
            Shape shape = part.shape();
            length = Math.addExact(length, ragged ? shape.elementCount() : shape.dim(0));
        }
        return ragged ? Shape.of(length) : first.shape().withFirst(length);
    }

    private static void check(ModelScope model, String input, Tensor first, Tensor other, boolean ragged) {
        Shape shape = other.shape();
        boolean joins = ragged
                || (shape.rank() > 0 && shape.withFirst(0).equals(first.shape().withFirst(0)));
        if (first.type() != other.type() || !joins) {
            throw InputMemory.error(
                    model,
                    input,
                    ErrorCode.INVALID_ARGUMENT,
                    other.type() + " " + shape + " cannot be joined with " + first.type() + " " + first.shape());
        }
    }
}
