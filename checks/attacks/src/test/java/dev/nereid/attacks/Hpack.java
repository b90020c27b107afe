package dev.nereid.attacks;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Encodes and decodes HTTP/2 headers as literals, for servers with an empty dynamic table. Stateless. */
final class Hpack {
    /** Names and values of the static table that occur in responses; by their index. */
    private static final Map<Integer, String> STATIC = Map.ofEntries(
            Map.entry(8, ":status=200"),
            Map.entry(9, ":status=204"),
            Map.entry(10, ":status=206"),
            Map.entry(11, ":status=304"),
            Map.entry(12, ":status=400"),
            Map.entry(13, ":status=404"),
            Map.entry(14, ":status=500"),
            Map.entry(28, "content-length="),
            Map.entry(31, "content-type="),
            Map.entry(33, "date="),
            Map.entry(54, "server="));

    private Hpack() {}

    /** Writes pairs of names and values. */
    static byte[] encode(String... pairs) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int i = 0; i < pairs.length; i++) {
            if (i % 2 == 0) {
                out.write(0); // literal without indexing, new name
            }
            byte[] text = RawHttp.ascii(pairs[i]);
            integer(out, 0, 7, text.length);
            out.writeBytes(text);
        }
        return out.toByteArray();
    }

    /** Writes an integer behind the first bits of a byte. */
    static void integer(ByteArrayOutputStream out, int first, int bits, int value) {
        int max = (1 << bits) - 1;
        if (value < max) {
            out.write(first | value);
            return;
        }
        out.write(first | max);
        int rest = value - max;
        for (; rest >= 128; rest >>>= 7) {
            out.write((rest & 127) | 128);
        }
        out.write(rest);
    }

    /** Reads a block of headers. */
    static Map<String, String> decode(byte[] block) throws IOException {
        Map<String, String> headers = new LinkedHashMap<>();
        ByteBuffer in = ByteBuffer.wrap(block);
        while (in.hasRemaining()) {
            int first = in.get() & 255;
            if (first >= 128) {
                String[] pair = isStatic(integer(in, first, 7));
                headers.put(pair[0], pair[1]);
            } else if (first >> 5 == 1) {
                integer(in, first, 5); // size of the table
            } else {
                int index = integer(in, first, first >> 6 == 1 ? 6 : 4);
                String name = index == 0 ? string(in) : isStatic(index)[0];
                headers.put(name, string(in));
            }
        }
        return headers;
    }

    private static String[] isStatic(int index) {
        return STATIC.getOrDefault(index, "static-" + index + "=").split("=", 2);
    }

    private static int integer(ByteBuffer in, int first, int bits) {
        int max = (1 << bits) - 1;
        int value = first & max;
        if (value == max) {
            int next;
            int shift = 0;
            do {
                next = in.get();
                value += (next & 127) << shift;
                shift += 7;
            } while (next < 0);
        }
        return value;
    }

    private static String string(ByteBuffer in) throws IOException {
        int first = in.get() & 255;
        byte[] text = new byte[integer(in, first, 7)];
        in.get(text);
        if (first >= 128) {
            throw new IOException("header: Huffman code (expected: a plain literal)");
        }
        return new String(text, StandardCharsets.ISO_8859_1);
    }
}
