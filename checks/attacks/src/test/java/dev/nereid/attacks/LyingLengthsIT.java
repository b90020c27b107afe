package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Tests requests with false lengths, sizes and forms. Each is refused with a response, and no larger buffer is
 * allocated for it.
 */
final class LyingLengthsIT {
    private static final int TIMEOUT_MILLIS = 3_000;
    private static final Tensor FLOATS = Tensor.floats("invalid", 1, 2, 3, 4);
    private static final long HUGE = 1L << 62;

    @RegisterExtension
    static final Victim victim = Victim.with();

    @Test
    void overHttp() throws Exception {
        String path = RawHttp.path(Models.ECHO);
        Map<String, byte[]> invalid = new TreeMap<>();
        invalid.put("Content-Length: negative", RawHttp.header(path, -1));
        invalid.put("Content-Length: huge", RawHttp.header(path, Long.MAX_VALUE));
        invalid.put("Content-Length: beyond a long", headers("Content-Length: 99999999999999999999"));
        invalid.put("Content-Length: no number", headers("Content-Length: 1e3"));
        invalid.put("Content-Length: two that differ", headers("Content-Length: 5", "Content-Length: 6"));
        invalid.put("Content-Length and chunks", headers("Content-Length: 5", "Transfer-Encoding: chunked"));
        invalid.put("two hosts", headers("Host: other", "Content-Length: 0"));
        invalid.put("unknown transfer coding", headers("Transfer-Encoding: lzw"));
        invalid.put("unknown transfer coding before chunks", headers("Transfer-Encoding: lzw, chunked"));
        for (String chunk : List.of(
                "zz\r\n",
                "-1\r\n",
                "ffffffffffffffff\r\n",
                "5\r\nabcdefgh\r\n0\r\n\r\n",
                "\r\n\r\n",
                "5;" + "a".repeat(20_000) + "\r\n")) {
            invalid.put(
                    "chunk "
                            + chunk.strip()
                                    .substring(0, Math.min(20, chunk.strip().length())),
                    RawHttp.concat(headers("Transfer-Encoding: chunked"), RawHttp.ascii(chunk)));
        }
        invalid.put(
                "trailer without a colon",
                RawHttp.concat(headers("Transfer-Encoding: chunked"), RawHttp.ascii("0\r\nnothing\r\n\r\n")));
        for (String length : List.of("-1", "1000000", Long.toString(HUGE), "99999999999999999999", "x")) {
            invalid.put(
                    "Inference-Header-Content-Length: " + length,
                    RawHttp.post(path, new byte[100], "Inference-Header-Content-Length: " + length));
        }
        for (long size : new long[] {-1, 0, 1, 15, 17, 1_000_000, HUGE, Long.MAX_VALUE}) {
            invalid.put("binary_data_size: " + size, binary(Models.ECHO, FLOATS, size));
        }
        invalid.put("shape [-4]", binary(Models.ECHO, FLOATS.shaped(-4), 16));
        invalid.put("shape [5]", binary(Models.ECHO, FLOATS.shaped(5), 16));
        invalid.put("shape of 2^62", binary(Models.ECHO, FLOATS.shaped(HUGE), 16));
        invalid.put("shape [2^62, 4]", binary(Models.GRID, FLOATS.shaped(HUGE, 4), 16));
        invalid.put("shape [2^32, 2^32]", binary(Models.GRID, FLOATS.shaped(1L << 32, 1L << 32), 16));
        invalid.put("shape [0] with data", binary(Models.ECHO, FLOATS.shaped(0), 16));
        for (long length : new long[] {2, 0x7fffffffL, 0xffffffffL}) {
            invalid.put("BYTES of " + length, binary(Models.WORDS, words(length), 5));
        }
        invalid.put("deep JSON", RawHttp.post(path, nested(100_000)));
        invalid.put(
                "deep data",
                RawHttp.post(
                        path,
                        RawHttp.ascii(
                                "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\"," + "\"shape\":[1],\"data\":"
                                        + "[".repeat(100_000) + "1" + "]".repeat(100_000) + "}]}")));
        invalid.put(
                "a number of many digits",
                RawHttp.post(
                        path,
                        RawHttp.ascii("{\"inputs\":[{\"name\":\"INPUT0\","
                                + "\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1e" + "9".repeat(1_000_000)
                                + "x]}]}")));
        invalid.put("gzip that is none", RawHttp.post(path, new byte[100], "Content-Encoding: gzip"));
        victim.attack(() -> {
            Map<String, String> wrong = new TreeMap<>();
            for (Map.Entry<String, byte[]> entry : invalid.entrySet()) {
                String outcome = overHttp(entry.getValue());
                if (!outcome.matches("[45].*")) {
                    wrong.put(entry.getKey(), outcome);
                }
            }
            assertThat(wrong).isEmpty();
        });
    }

    @Test
    void promisesThatAreNotKeptOverHttp() throws Exception {
        byte[] json = RawHttp.inferJson(FLOATS, 16);
        String path = RawHttp.path(Models.ECHO);
        victim.attack(() -> {
            for (int i = 0; i < 200; i++) {
                try (RawHttp half = RawHttp.connect(victim.server().http())) {
                    half.send(RawHttp.header(path, 1_000_000, "Inference-Header-Content-Length: " + json.length));
                    half.send(json);
                    if (i % 2 == 0) {
                        half.reset();
                    }
                }
            }
        });
        Await.until(
                "memory free",
                java.time.Duration.ofSeconds(5),
                () -> victim.server().tensorBytes() == 0);
    }

    @Test
    void aFieldNameOf60Megabytes() throws Exception {
        byte[] request =
                RawHttp.post(RawHttp.path(Models.ECHO), RawHttp.ascii("{\"" + "n".repeat(60_000_000) + "\":1}"));
        byte[] compressible =
                RawHttp.post("/v2/repository/index", RawHttp.ascii("{\"" + "n".repeat(60_000_000) + "\":1}"));
        victim.attack(() -> {
            assertThat(overHttp(request)).matches("[45].*");
            assertThat(overHttp(compressible)).matches("[245].*");
        });
    }

    @Test
    void overGrpc() throws Exception {
        Map<String, byte[]> invalid = new TreeMap<>();
        byte[] right = InferMessage.request(Models.ECHO, FLOATS);
        for (long length : new long[] {0x7fffffffL, 0xffffffffL, 0x80000000L}) {
            invalid.put("message of " + length, InferMessage.framed(0, length, right));
        }
        invalid.put("message that ends early", InferMessage.framed(0, right.length + 1, right));
        invalid.put("message with more behind it", InferMessage.framed(0, right.length - 1, right));
        invalid.put("compressed without a coding", InferMessage.framed(1, right.length, right));
        invalid.put("flag of 2", InferMessage.framed(2, right.length, right));
        invalid.put("header only", new byte[3]);
        invalid.put("nothing", new byte[0]);
        invalid.put("two messages", RawHttp.concat(InferMessage.framed(right), InferMessage.framed(right)));
        invalid.put("a field beyond the message", InferMessage.framed(new byte[] {0x3a, (byte) 0xff, (byte) 0xff, 3}));
        invalid.put(
                "a field of a negative length",
                InferMessage.framed(RawHttp.concat(new byte[] {0x3a}, filled(9, 0xff), new byte[] {1})));
        invalid.put("varints without end", InferMessage.framed(filled(1_000, 0xff)));
        invalid.put("groups within groups", InferMessage.framed(filled(100_000, 0x7b)));
        invalid.put("shape [-4]", message(Models.ECHO, FLOATS.shaped(-4)));
        invalid.put("shape [5]", message(Models.ECHO, FLOATS.shaped(5)));
        invalid.put("shape of 2^62", message(Models.ECHO, FLOATS.shaped(HUGE)));
        invalid.put("shape [2^62, 4]", message(Models.GRID, FLOATS.shaped(HUGE, 4)));
        invalid.put("shape [2^32, 2^32]", message(Models.GRID, FLOATS.shaped(1L << 32, 1L << 32)));
        invalid.put("shape [0] with data", message(Models.ECHO, FLOATS.shaped(0)));
        for (long length : new long[] {2, 0x7fffffffL, 0xffffffffL}) {
            invalid.put("BYTES of " + length, message(Models.WORDS, words(length)));
        }
        victim.attack(() -> {
            Map<String, String> wrong = new TreeMap<>();
            for (Map.Entry<String, byte[]> entry : invalid.entrySet()) {
                String outcome = overGrpc(entry.getValue());
                if (outcome.startsWith("0 ") || outcome.startsWith("no response")) {
                    wrong.put(entry.getKey(), outcome);
                }
            }
            assertThat(wrong).isEmpty();
        });
    }

    @Test
    void framesOfHttp2() throws Exception {
        byte[] call = Frames.call(1, Frames.INFER);
        Map<String, byte[]> invalid = new TreeMap<>();
        invalid.put("a frame of 16 MB", Frames.frame(Frames.DATA, 0, 1, 0xffffff, new byte[100]));
        invalid.put("more padding than there is", Frames.frame(Frames.DATA, Frames.PADDED, 1, filled(8, 0xff)));
        invalid.put("SETTINGS of 5 bytes", Frames.frame(Frames.SETTINGS, 0, 0, new byte[5]));
        invalid.put("SETTINGS of a stream", Frames.frame(Frames.SETTINGS, 0, 1, new byte[6]));
        invalid.put("a window beyond 2^31", Frames.windowUpdate(0, Integer.MAX_VALUE));
        invalid.put("an initial window beyond 2^31", Frames.settings(Frames.INITIAL_WINDOW_SIZE, -1));
        invalid.put("PING of 7 bytes", Frames.frame(Frames.PING, 0, 0, new byte[7]));
        invalid.put("DATA of stream 0", Frames.data(0, false, new byte[1]));
        invalid.put("DATA of a stream that was never begun", Frames.data(99, false, new byte[1]));
        invalid.put("HEADERS of an even stream", Frames.frame(Frames.HEADERS, 5, 2, Frames.callHeaders(Frames.INFER)));
        invalid.put("HEADERS that end within a literal", Frames.frame(Frames.HEADERS, 5, 3, new byte[] {0, 127}));
        invalid.put("HEADERS of an unknown index", Frames.frame(Frames.HEADERS, 5, 3, filled(5, 0xbf)));
        invalid.put("HEADERS of a number without end", Frames.frame(Frames.HEADERS, 5, 3, filled(50, 0xff)));
        invalid.put("CONTINUATION of nothing", Frames.frame(Frames.CONTINUATION, Frames.END_HEADERS, 1, new byte[0]));
        invalid.put("PUSH_PROMISE", Frames.frame(5, Frames.END_HEADERS, 1, new byte[4]));
        victim.attack(() -> {
            Map<String, String> wrong = new TreeMap<>();
            for (Map.Entry<String, byte[]> entry : invalid.entrySet()) {
                try (RawHttp2 connection = RawHttp2.connect(victim.server().grpc())) {
                    connection.timeout(TIMEOUT_MILLIS);
                    connection.send(RawHttp.concat(call, entry.getValue()));
                    String end = connection.awaitEnd();
                    if (end.contains("Timeout")) {
                        wrong.put(entry.getKey(), end);
                    }
                }
            }
            assertThat(wrong).isEmpty();
        });
    }

    @Test
    void moreDataThanTheWindowAllows() throws Exception {
        byte[] data = Frames.data(1, false, new byte[16_384]);
        victim.attack(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().grpc(), 20)) {
                connections.send(RawHttp.concat(
                        Frames.preface(65_535),
                        Frames.call(1, Frames.INFER),
                        Frames.data(1, false, InferMessage.framed(0, 0x7fffffffL, new byte[0]))));
                connections.flood(data, java.time.Duration.ofSeconds(4));
            }
        });
    }

    /** Returns the status and text of the response. */
    private static String overHttp(byte[] request) throws IOException {
        try (RawHttp connection = RawHttp.connect(victim.server().http()).timeout(TIMEOUT_MILLIS)) {
            try {
                connection.send(request);
            } catch (IOException e) {
                // refused before all was sent
            }
            RawHttp.Response response = connection.read();
            return response.status() + " " + cut(response.text());
        } catch (SocketTimeoutException e) {
            return "no response within " + TIMEOUT_MILLIS + " ms";
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static String overGrpc(byte[] framed) throws IOException {
        try (RawHttp2 connection = RawHttp2.connect(victim.server().grpc())) {
            connection.timeout(TIMEOUT_MILLIS);
            RawHttp2.Call call = connection.await(connection.begin(Frames.INFER, framed));
            return call.status() + " " + cut(call.text());
        } catch (SocketTimeoutException e) {
            return "no response within " + TIMEOUT_MILLIS + " ms";
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static String cut(String text) {
        return text.substring(0, Math.min(200, text.length()));
    }

    private static byte[] headers(String... lines) {
        return RawHttp.ascii("POST " + RawHttp.path(Models.ECHO) + " HTTP/1.1\r\nHost: victim\r\n"
                + String.join("\r\n", lines) + "\r\n\r\n");
    }

    private static byte[] binary(String model, Tensor input, long size) {
        byte[] json = RawHttp.inferJson(input, size);
        return RawHttp.post(
                RawHttp.path(model),
                RawHttp.concat(json, input.data()),
                "Inference-Header-Content-Length: " + json.length);
    }

    private static byte[] message(String model, Tensor input) {
        return InferMessage.framed(InferMessage.request(model, input));
    }

    /** One byte string, with a false length unless it is 1. */
    private static Tensor words(long length) {
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        for (int shift = 0; shift < 32; shift += 8) {
            data.write((int) (length >> shift));
        }
        data.write('a');
        return new Tensor("invalid", "BYTES", new long[] {1}, data.toByteArray());
    }

    private static byte[] nested(int depth) {
        return RawHttp.ascii("{\"a\":".repeat(depth) + "1" + "}".repeat(depth));
    }

    private static byte[] filled(int size, int value) {
        byte[] bytes = new byte[size];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }
}
