package dev.nereid.grpc.wire;

/**
 * The names in a request, as its client wrote them. Immutable.
 *
 * @param version the version of the model, as text
 * @param id the client's name for the request
 */
public record RequestNames(String model, String version, String id) {}
