package dev.nereid.grpc.wire;

import dev.nereid.api.InferRequest;

/**
 * An inference request and what its responses depend on. Immutable as a view of the call's memory, which belongs to
 * the holder.
 *
 * @param request the call
 * @param emptyFinalResponse whether the client of a stream wants to be told of an end without a response
 * @param shared which of its tensors lie in shared memory
 */
public record AssembledRequest(InferRequest request, boolean emptyFinalResponse, SharedTensors shared) {}
