package dev.nereid.grpc.wire;

import dev.nereid.api.InferRequest;

/**
 * An inference request with the settings of its responses. Immutable; the holder owns the request's memory.
 *
 * @param emptyFinalResponse whether a stream sends an empty final response if the request ends without a response
 * @param shared the request's tensors in shared memory
 */
public record AssembledRequest(InferRequest request, boolean emptyFinalResponse, SharedTensors shared) {}
