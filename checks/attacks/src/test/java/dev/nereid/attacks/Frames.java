package dev.nereid.attacks;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Frames of HTTP/2, byte by byte; nothing is checked. Stateless. */
final class Frames {
    static final int DATA = 0;
    static final int HEADERS = 1;
    static final int PRIORITY = 2;
    static final int RST_STREAM = 3;
    static final int SETTINGS = 4;
    static final int PING = 6;
    static final int GOAWAY = 7;
    static final int WINDOW_UPDATE = 8;
    static final int CONTINUATION = 9;

    static final int END_STREAM = 1;
    static final int ACK = 1;
    static final int END_HEADERS = 4;
    static final int PADDED = 8;

    static final int HEADER_TABLE_SIZE = 1;
    static final int INITIAL_WINDOW_SIZE = 4;

    static final int CANCEL = 8;

    static final int HEADER_BYTES = 9;

    static final String INFER = "/inference.GRPCInferenceService/ModelInfer";
    static final String STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer";

    private static final byte[] PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    private Frames() {}

    static byte[] frame(int type, int flags, int stream, byte[] payload) {
        return frame(type, flags, stream, payload.length, payload);
    }

    /** Writes a frame with a length that may be false. */
    static byte[] frame(int type, int flags, int stream, int length, byte[] payload) {
        return ByteBuffer.allocate(HEADER_BYTES + payload.length)
                .put((byte) (length >> 16))
                .putShort((short) length)
                .put((byte) type)
                .put((byte) flags)
                .putInt(stream)
                .put(payload)
                .array();
    }

    /** Writes the connection preface of a client with an initial window of so many bytes. */
    static byte[] preface(int window) {
        return RawHttp.concat(PREFACE, settings(HEADER_TABLE_SIZE, 0, INITIAL_WINDOW_SIZE, window));
    }

    /** Writes pairs of settings and values. */
    static byte[] settings(int... pairs) {
        ByteBuffer payload = ByteBuffer.allocate(pairs.length * 3);
        for (int i = 0; i < pairs.length; i += 2) {
            payload.putShort((short) pairs[i]).putInt(pairs[i + 1]);
        }
        return frame(SETTINGS, 0, 0, payload.array());
    }

    /** Writes the headers of a call of gRPC. */
    static byte[] call(int stream, String path, String... more) {
        return frame(HEADERS, END_HEADERS, stream, callHeaders(path, more));
    }

    static byte[] callHeaders(String path, String... more) {
        byte[] first = Hpack.encode(
                ":method",
                "POST",
                ":scheme",
                "http",
                ":path",
                path,
                ":authority",
                "victim",
                "te",
                "trailers",
                "content-type",
                "application/grpc");
        return RawHttp.concat(first, Hpack.encode(more));
    }

    static byte[] data(int stream, boolean last, byte[] bytes) {
        return frame(DATA, last ? END_STREAM : 0, stream, bytes);
    }

    static byte[] integer(int type, int stream, int value) {
        return frame(type, 0, stream, ByteBuffer.allocate(4).putInt(value).array());
    }

    static byte[] reset(int stream) {
        return integer(RST_STREAM, stream, CANCEL);
    }

    static byte[] windowUpdate(int stream, int increment) {
        return integer(WINDOW_UPDATE, stream, increment);
    }

    static byte[] ping(long value) {
        return frame(PING, 0, 0, ByteBuffer.allocate(8).putLong(value).array());
    }

    /** Writes a whole small call: headers, message, end. */
    static byte[] wholeCall(int stream, String path, byte[] framedMessage) {
        return RawHttp.concat(call(stream, path), data(stream, true, framedMessage));
    }
}
