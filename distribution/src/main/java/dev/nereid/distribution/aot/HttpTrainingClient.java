package dev.nereid.distribution.aot;

import dev.nereid.distribution.process.Endpoint;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.BooleanSupplier;

/** HTTP client: sends a request on each connection, then reads the responses. Confined to the thread that uses it. */
final class HttpTrainingClient implements AutoCloseable {
    private static final int READ_TIMEOUT_MILLIS = 30_000;
    private static final int MAX_HEADER = 16 << 10;
    private static final String OK = "http/1.1 200 ";
    private static final String LENGTH = "\r\ncontent-length: ";

    private final List<Lane> lanes;
    private long sent;
    private long completed;

    private HttpTrainingClient(List<Lane> lanes) {
        this.lanes = lanes;
    }

    /** A prepared request with the offset of its id. Confined to the thread that sends it. */
    static final class Request {
        private final byte[] bytes;

        /** Offset of the id; negative without an id. */
        private final int idAt;

        private final int idLength;

        private Request(byte[] bytes, int idAt, int idLength) {
            this.bytes = bytes;
            this.idAt = idAt;
            this.idLength = idLength;
        }

        static Request of(String path, String json, String id) {
            return of(path, "Content-Type: application/json\r\n", json, 0, id);
        }

        /** Returns a request with JSON followed by zeros. */
        static Request of(String path, String json, int zeros, String id) {
            return of(
                    path,
                    "Content-Type: application/octet-stream\r\nInference-Header-Content-Length: " + json.length()
                            + "\r\n",
                    json,
                    zeros,
                    id);
        }

        static Request get(String path) {
            return new Request(bytes("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), -1, 0);
        }

        private static Request of(String path, String headers, String json, int zeros, String id) {
            byte[] text = bytes("POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "Content-Length: "
                    + (json.length() + zeros) + "\r\n\r\n" + json);
            return new Request(
                    Arrays.copyOf(text, text.length + zeros), AotTrainingRequests.indexOf(text, id), id.length());
        }

        private static byte[] bytes(String text) {
            return text.getBytes(StandardCharsets.US_ASCII);
        }
    }

    private static final class Lane {
        private final Socket socket;
        private final Request request;
        private final byte[] buffer = new byte[MAX_HEADER];

        Lane(Socket socket, Request request) {
            this.socket = socket;
            this.request = request;
        }

        void send(long number) throws IOException {
            if (request.idAt >= 0) {
                AotTrainingRequests.number(request.bytes, request.idAt, request.idLength, number);
            }
            socket.getOutputStream().write(request.bytes);
        }

        /** Reads a response to its end. */
        void receive() throws IOException {
            InputStream in = socket.getInputStream();
            int read = 0;
            int end;
            do {
                read += more(in, buffer, read);
                end = endOfHeader(read);
            } while (end < 0);
            String header = new String(buffer, 0, end, StandardCharsets.ISO_8859_1).toLowerCase(Locale.ROOT);
            int at = header.indexOf(LENGTH);
            if (!header.startsWith(OK) || at < 0) {
                throw new IOException(
                        "HTTP: " + header.lines().findFirst().orElse("") + " (expected: 200, and a length)");
            }
            int from = at + LENGTH.length();
            int length = Integer.parseInt(header, from, header.indexOf('\r', from), 10);
            for (int remaining = length - (read - end); remaining > 0; ) {
                remaining -= more(in, buffer, 0);
            }
        }

        private int endOfHeader(int length) {
            for (int i = 3; i < length; i++) {
                if (buffer[i] == '\n' && buffer[i - 2] == '\n') {
                    return i + 1;
                }
            }
            return -1;
        }

        private static int more(InputStream in, byte[] buffer, int from) throws IOException {
            int count = in.read(buffer, from, buffer.length - from);
            if (count <= 0) {
                throw new EOFException("HTTP: connection ended within a response");
            }
            return count;
        }
    }

    /** Connects, once for each of the requests to send. */
    static HttpTrainingClient connect(Endpoint port, List<Request> requests) throws IOException {
        HttpTrainingClient client = new HttpTrainingClient(new ArrayList<>());
        try {
            for (Request request : requests) {
                Socket socket = new Socket(port.host(), port.port());
                client.lanes.add(new Lane(socket, request));
                socket.setTcpNoDelay(true);
                socket.setSoTimeout(READ_TIMEOUT_MILLIS);
            }
            return client;
        } catch (IOException e) {
            client.close();
            throw e;
        }
    }

    /** Sends and receives while a condition holds, and returns the number of completed requests. Blocks. */
    long run(BooleanSupplier running) throws IOException {
        while (running.getAsBoolean()) {
            for (Lane lane : lanes) {
                lane.send(sent++);
            }
            for (Lane lane : lanes) {
                lane.receive();
                completed++;
            }
        }
        return completed;
    }

    @Override
    public void close() throws IOException {
        for (Lane lane : lanes) {
            lane.socket.close();
        }
    }
}
