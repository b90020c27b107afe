package dev.nereid.attacks;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;

/** Messages of {@code ModelInfer} in protobuf, byte by byte. Stateless. */
final class InferMessage {
    private static final int VARINT = 0;
    private static final int LENGTH_DELIMITED = 2;
    private static final int RAW_OUTPUT = 6;
    private static final int STREAMED_RESPONSE = 2;

    /** The bytes before a message: whether it is compressed, and its length. */
    static final int PREFIX = 5;

    private InferMessage() {}

    /** Writes a request with one input. */
    static byte[] request(String model, Tensor input) {
        return request(model, "INPUT0", input);
    }

    static byte[] request(String model, String inputName, Tensor input) {
        ByteArrayOutputStream tensor = new ByteArrayOutputStream();
        field(tensor, 1, RawHttp.ascii(inputName));
        field(tensor, 2, RawHttp.ascii(input.datatype()));
        ByteArrayOutputStream shape = new ByteArrayOutputStream();
        for (long dimension : input.shape()) {
            varint(shape, dimension);
        }
        field(tensor, 3, shape.toByteArray());
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        field(request, 1, RawHttp.ascii(model));
        field(request, 3, RawHttp.ascii(input.id()));
        field(request, 5, tensor.toByteArray());
        field(request, 7, input.data());
        return request.toByteArray();
    }

    /** Prepends the five bytes before a message: whether it is compressed, and its length; both may be false. */
    static byte[] framed(int flag, long length, byte[] message) {
        return ByteBuffer.allocate(5 + message.length)
                .put((byte) flag)
                .putInt((int) length)
                .put(message)
                .array();
    }

    static byte[] framed(byte[] message) {
        return framed(0, message.length, message);
    }

    /** Writes a field of bytes. */
    static void field(ByteArrayOutputStream out, int number, byte[] value) {
        varint(out, (long) number << 3 | LENGTH_DELIMITED);
        varint(out, value.length);
        out.writeBytes(value);
    }

    static void varint(ByteArrayOutputStream out, long value) {
        long rest = value;
        for (; (rest & ~127L) != 0; rest >>>= 7) {
            out.write((int) ((rest & 127) | 128));
        }
        out.write((int) rest);
    }

    /** Returns the first output of a response. */
    static byte[] output(byte[] response) throws IOException {
        return bytes(response, RAW_OUTPUT);
    }

    /** Returns the first output of a response on a stream. */
    static byte[] streamedOutput(byte[] response) throws IOException {
        return output(bytes(response, STREAMED_RESPONSE));
    }

    private static byte[] bytes(byte[] message, int number) throws IOException {
        ByteBuffer in = ByteBuffer.wrap(message);
        while (in.hasRemaining()) {
            long tag = varint(in);
            switch ((int) (tag & 7)) {
                case VARINT -> varint(in);
                case LENGTH_DELIMITED -> {
                    byte[] value = new byte[(int) varint(in)];
                    in.get(value);
                    if (tag >> 3 == number) {
                        return value;
                    }
                }
                default -> throw new IOException("response: field of kind " + (tag & 7) + " (expected: 0 or 2)");
            }
        }
        return new byte[0];
    }

    private static long varint(ByteBuffer in) {
        long value = 0;
        int shift = 0;
        byte next;
        do {
            next = in.get();
            value |= (next & 127L) << shift;
            shift += 7;
        } while (next < 0);
        return value;
    }
}
