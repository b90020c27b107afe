package dev.nereid.grpc.stream;

/**
 * Limits of one stream's waiting responses and open requests. Immutable.
 *
 * @param responses so many responses, or requests of a client that does not read, and the stream is not read on; 16 times
 *     so many requests of any client, likewise
 * @param bytes responses of so many bytes, or requests of 16 times as many, and the stream is not read on
 * @param bytesAhead responses of so many bytes that wait behind others of their requests, and no further one is taken
 */
public record StreamLimits(int responses, long bytes, long bytesAhead) {}
