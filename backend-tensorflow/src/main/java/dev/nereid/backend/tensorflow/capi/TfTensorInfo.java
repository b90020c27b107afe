package dev.nereid.backend.tensorflow.capi;

import java.util.Optional;

/**
 * What a graph knows about a tensor. Immutable.
 *
 * @param type the type of its elements
 * @param shape the dimensions, -1 where they are open; empty if not even their number is known
 */
public record TfTensorInfo(TfDataType type, Optional<long[]> shape) {}
