package dev.nereid.benchmarks.gpu;

import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.Loopback;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Requests over HTTP/1.1 on several connections, one at a time on each. Static functions only. */
final class HttpConnections {
    private static final int BUFFER = 1 << 16;

    private HttpConnections() {}

    /**
     * Sends requests for some time, at most {@code atMost} on each connection; returns completed ones per second.
     *
     * @throws IOException if a response has another status than 200
     */
    static double perSecond(int port, String model, InferBody body, int connections, Duration time, int atMost)
            throws Exception {
        byte[] content = body.http();
        return perSecond(port, request(model, content, jsonLength(content)), connections, time, atMost);
    }

    static byte[] request(String model, byte[] content, int jsonLength) {
        byte[] head = ("POST /v2/models/" + model + "/infer HTTP/1.1\r\nHost: " + Loopback.ADDRESS
                        + "\r\nInference-Header-Content-Length: " + jsonLength + "\r\nContent-Length: "
                        + content.length + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII);
        byte[] request = new byte[head.length + content.length];
        System.arraycopy(head, 0, request, 0, head.length);
        System.arraycopy(content, 0, request, head.length, content.length);
        return request;
    }

    /** Sends a prepared request for some time, as above. */
    static double perSecond(int port, byte[] request, int connections, Duration time, int atMost) throws Exception {
        long start = System.nanoTime();
        try (ExecutorService threads = Executors.newFixedThreadPool(connections)) {
            List<Future<Long>> running = new ArrayList<>();
            for (int i = 0; i < connections; i++) {
                running.add(threads.submit(() -> send(port, request, start + time.toNanos(), atMost)));
            }
            long requests = 0;
            for (Future<Long> each : running) {
                requests += each.get();
            }
            return requests / ((System.nanoTime() - start) / 1e9);
        }
    }

    /** Sends one request; returns the numbers of its only output. */
    static float[] infer(int port, String model, InferBody body) throws IOException {
        byte[] content = body.http();
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write(request(model, content, jsonLength(content)));
            byte[] response = receive(new BufferedInputStream(socket.getInputStream(), BUFFER));
            int end = new String(response, StandardCharsets.ISO_8859_1).indexOf("}]}") + "}]}".length();
            FloatBuffer numbers = ByteBuffer.wrap(response, end, response.length - end)
                    .slice()
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .asFloatBuffer();
            float[] copy = new float[numbers.remaining()];
            numbers.get(copy);
            return copy;
        }
    }

    /** Returns where the JSON part of a body ends: behind the brace that closes its parameters. */
    private static int jsonLength(byte[] body) {
        String text = new String(body, StandardCharsets.ISO_8859_1);
        String end = "\"binary_data_output\":true}}";
        return text.indexOf(end) + end.length();
    }

    private static long send(int port, byte[] request, long end, int atMost) throws IOException {
        long count = 0;
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setTcpNoDelay(true);
            InputStream in = new BufferedInputStream(socket.getInputStream(), BUFFER);
            while (System.nanoTime() < end && count < atMost) {
                socket.getOutputStream().write(request);
                receive(in);
                count++;
            }
        }
        return count;
    }

    private static byte[] receive(InputStream in) throws IOException {
        String status = line(in);
        int length = 0;
        for (String field = line(in); !field.isEmpty(); field = line(in)) {
            String lower = field.toLowerCase(Locale.ROOT);
            if (lower.startsWith("content-length:")) {
                length = Integer.parseInt(
                        lower.substring("content-length:".length()).strip());
            }
        }
        byte[] body = in.readNBytes(length);
        if (!status.contains(" 200 ")) {
            throw new IOException(status + ": " + new String(body, StandardCharsets.UTF_8));
        }
        return body;
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new IOException("the connection ended: " + line);
            }
            if (next != '\r') {
                line.append((char) next);
            }
        }
        return line.toString();
    }
}
