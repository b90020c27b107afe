package dev.nereid.grpc.stream;

/**
 * Limits of one stream's waiting responses and open requests. Immutable.
 *
 * @param responses the number of waiting responses at which reading of the stream pauses; also of open requests if the
 *     client does not read, or a 16th of open requests if it does
 * @param bytes the bytes of waiting responses at which reading of the stream pauses; also a 16th of the bytes of open
 *     requests
 * @param bytesAhead the bytes of responses waiting behind others of their requests at which no further one is accepted
 */
public record StreamLimits(int responses, long bytes, long bytesAhead) {}
