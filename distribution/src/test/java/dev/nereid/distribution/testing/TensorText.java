package dev.nereid.distribution.testing;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.StringJoiner;

/** Writes tensors as JSON, and reads them, exactly. Texts hold one character for each byte. */
public final class TensorText {
    private static final int BF16_SHIFT = 16;

    private TensorText() {}

    /** Writes the elements of a tensor as a flat array. */
    public static String write(String datatype, byte[] data) {
        ByteBuffer bytes = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
        StringJoiner elements = new StringJoiner(",", "[", "]");
        while (bytes.hasRemaining()) {
            elements.add(
                    switch (datatype) {
                        case "BOOL" -> Boolean.toString(bytes.get() != 0);
                        case "UINT8" -> Integer.toString(Byte.toUnsignedInt(bytes.get()));
                        case "UINT16" -> Integer.toString(Short.toUnsignedInt(bytes.getShort()));
                        case "UINT32" -> Integer.toUnsignedString(bytes.getInt());
                        case "UINT64" -> Long.toUnsignedString(bytes.getLong());
                        case "INT8" -> Byte.toString(bytes.get());
                        case "INT16" -> Short.toString(bytes.getShort());
                        case "INT32" -> Integer.toString(bytes.getInt());
                        case "INT64" -> Long.toString(bytes.getLong());
                        case "FP16" -> Float.toString(Float.float16ToFloat(bytes.getShort()));
                        case "BF16" -> Float.toString(Float.intBitsToFloat(bytes.getShort() << BF16_SHIFT));
                        case "FP32" -> Float.toString(bytes.getFloat());
                        case "FP64" -> Double.toString(bytes.getDouble());
                        case "BYTES" -> quoted(string(bytes));
                        default -> throw new IllegalArgumentException("datatype: " + datatype);
                    });
        }
        return elements.toString();
    }

    /** Reads the elements of a tensor from a flat array. */
    public static ByteString read(String datatype, JsonArray elements) {
        ByteString.Output bytes = ByteString.newOutput();
        ByteBuffer one = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (JsonElement element : elements) {
            String text = element.getAsString();
            one.clear();
            switch (datatype) {
                case "BOOL" -> one.put((byte) (element.getAsBoolean() ? 1 : 0));
                case "UINT8", "INT8" -> one.put((byte) Integer.parseInt(text));
                case "UINT16", "INT16" -> one.putShort((short) Integer.parseInt(text));
                case "UINT32", "INT32" -> one.putInt((int) Long.parseLong(text));
                case "UINT64" -> one.putLong(Long.parseUnsignedLong(text));
                case "INT64" -> one.putLong(Long.parseLong(text));
                case "FP16" -> one.putShort(Float.floatToFloat16(Float.parseFloat(text)));
                case "BF16" -> one.putShort((short) (Float.floatToRawIntBits(Float.parseFloat(text)) >>> BF16_SHIFT));
                case "FP32" -> one.putFloat(Float.parseFloat(text));
                case "FP64" -> one.putDouble(Double.parseDouble(text));
                case "BYTES" -> one.putInt(text.length());
                default -> throw new IllegalArgumentException("datatype: " + datatype);
            }
            bytes.write(one.array(), 0, one.position());
            if (datatype.equals("BYTES")) {
                bytes.write(text.getBytes(StandardCharsets.ISO_8859_1), 0, text.length());
            }
        }
        return bytes.toByteString();
    }

    /** Writes a string of bytes. */
    public static String quoted(String bytes) {
        StringBuilder text = new StringBuilder("\"");
        bytes.chars().forEach(next -> {
            if (next == '"' || next == '\\') {
                text.append('\\').append((char) next);
            } else if (next < ' ') {
                text.append("\\u%04x".formatted(next));
            } else {
                text.append((char) next);
            }
        });
        return text.append('"').toString();
    }

    private static String string(ByteBuffer bytes) {
        byte[] content = new byte[bytes.getInt()];
        bytes.get(content);
        return new String(content, StandardCharsets.ISO_8859_1);
    }
}
