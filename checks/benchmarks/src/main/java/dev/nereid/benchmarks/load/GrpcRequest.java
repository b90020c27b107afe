package dev.nereid.benchmarks.load;

import java.nio.charset.StandardCharsets;

/** A serialized gRPC request. Confined to one lane, which has one call in progress at a time. */
final class GrpcRequest {
    private static final int HEX_BITS = 4;

    private final byte[] message;

    /** Offset of the id, which is written for each call; negative if there is none. */
    private final int idAt;

    private final int idLength;
    private final int responseSize;

    private GrpcRequest(byte[] message, int idAt, int idLength, int responseSize) {
        this.message = message;
        this.idAt = idAt;
        this.idLength = idLength;
        this.responseSize = responseSize;
    }

    /** Creates a request of a message that contains an id, unless that is empty. */
    static GrpcRequest of(byte[] message, String id, int responseSize) {
        int at = id.isEmpty() ? -1 : new String(message, StandardCharsets.ISO_8859_1).indexOf(id);
        return new GrpcRequest(message, at, id.length(), responseSize);
    }

    /** Returns the same request with copied bytes. */
    GrpcRequest copy() {
        return new GrpcRequest(message.clone(), idAt, idLength, responseSize);
    }

    /** Returns the size of every response in bytes. */
    int responseSize() {
        return responseSize;
    }

    /** Returns the bytes, with a number as their id if they have one. */
    byte[] bytes(long number) {
        long rest = number;
        for (int i = idAt + idLength - 1; idAt >= 0 && i >= idAt; i--) {
            message[i] = (byte) Character.forDigit((int) (rest & (1 << HEX_BITS) - 1), 1 << HEX_BITS);
            rest >>>= HEX_BITS;
        }
        return message;
    }
}
