package dev.nereid.backend.tensorflow.capi;

import java.util.Optional;

/**
 * An output of an operation in a loaded graph, which a run feeds or fetches. Immutable; valid as long as its session.
 *
 * @param index the number of its output
 * @param shape the dimensions, -1 where they are open; empty if not even their number is known
 */
record TfPort(long operation, int index, TfDataType type, Optional<long[]> shape) {}
