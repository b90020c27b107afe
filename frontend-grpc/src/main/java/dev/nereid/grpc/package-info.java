/**
 * Serves an inference server over gRPC: the listener and its options.
 *
 * <p>Starting points: {@link dev.nereid.grpc.GrpcFrontend} starts and stops it. A {@code ModelInfer} call goes through
 * {@code InferMessageReader}, which parses the request by hand from the transport's buffers, {@code
 * InferRequestAssembler}, which makes an inference request of it, {@code ModelInferCall}, and {@code
 * InferResponseMessage}, which writes the response.
 */
@NullMarked
package dev.nereid.grpc;

import org.jspecify.annotations.NullMarked;
