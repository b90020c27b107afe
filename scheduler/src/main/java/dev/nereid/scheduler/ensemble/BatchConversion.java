package dev.nereid.scheduler.ensemble;

import dev.nereid.spi.Shape;

/** Converts shapes between models with and without batch dimension. Static functions only. */
final class BatchConversion {
    private BatchConversion() {}

    /**
     * Returns the shape in which a model gets a tensor.
     *
     * @param dims the configured dimensions, without batch dimension
     * @param batches whether the model has a batch dimension
     * @param batchSize the size of the batch dimension of the tensor; 0 if it has none
     * @return the shape with a batch dimension of 1 in front, or without it, or as it is
     */
    static Shape convert(Shape dims, boolean batches, int batchSize, Shape actual) {
        if (batches == (batchSize != 0)) {
            return actual;
        }
        boolean fits = dims.accepts(actual);
        if (batches) {
            return fits ? actual.prepend(1) : actual;
        }
        return !fits && batchSize == 1 && actual.rank() > 0 ? actual.dropFirst() : actual;
    }
}
