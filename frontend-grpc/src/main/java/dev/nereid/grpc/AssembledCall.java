package dev.nereid.grpc;

import dev.nereid.api.InferCall;

/**
 * A call and what its answer depends on. Immutable as a view of the call's memory, which belongs to the holder.
 *
 * @param call the call
 * @param wantsEmptyFinal whether the client of a stream wants to be told of an end without a response
 * @param shared which of its tensors lie in shared memory
 */
record AssembledCall(InferCall call, boolean wantsEmptyFinal, SharedTensors shared) {}
