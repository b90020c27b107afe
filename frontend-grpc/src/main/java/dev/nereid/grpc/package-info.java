/**
 * The gRPC front end: the inference service, health checking and server reflection.
 *
 * <p>Starting points: {@link dev.nereid.grpc.GrpcFrontend} starts and stops it. A {@code ModelInfer} call goes through
 * {@code InferMessageReader}, which parses the request by hand from the transport's buffers, {@code CallAssembler},
 * which makes a call of it, {@code ModelInferCall}, and {@code InferResponseMessage}, which writes the response.
 */
@NullMarked
package dev.nereid.grpc;

import org.jspecify.annotations.NullMarked;
