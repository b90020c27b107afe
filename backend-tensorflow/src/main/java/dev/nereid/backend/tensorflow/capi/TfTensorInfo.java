package dev.nereid.backend.tensorflow.capi;

import java.util.Optional;

/**
 * Type and shape of a tensor as far as a graph knows them. Immutable.
 *
 * @param shape the dimensions, -1 where they are open; empty if not even their number is known
 */
public record TfTensorInfo(TfDataType type, Optional<long[]> shape) {}
