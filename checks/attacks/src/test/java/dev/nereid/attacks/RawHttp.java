package dev.nereid.attacks;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** An HTTP/1.1 connection that sends exactly the bytes of the test. Confined to one thread, except reset and close. */
final class RawHttp implements AutoCloseable {
    private static final int CONNECT_MILLIS = 3_000;
    private static final int READ_MILLIS = 20_000;

    private final Socket socket;
    private final InputStream in;

    RawHttp(Socket socket) throws IOException {
        this.socket = socket;
        in = new BufferedInputStream(socket.getInputStream());
    }

    static RawHttp connect(InetSocketAddress address) throws IOException {
        return new RawHttp(socket(address));
    }

    /** Connects, with a timeout of three seconds, and twenty for each read. */
    static Socket socket(InetSocketAddress address) throws IOException {
        Socket socket = new Socket();
        try {
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(READ_MILLIS);
            socket.connect(address, CONNECT_MILLIS);
            return socket;
        } catch (IOException e) {
            socket.close();
            throw e;
        }
    }

    /** Writes a request without a body. */
    static byte[] get(String path) {
        return ascii("GET " + path + " HTTP/1.1\r\nHost: victim\r\n\r\n");
    }

    /** Writes a request with a body, and headers in lines. */
    static byte[] post(String path, byte[] body, String... headers) {
        return concat(header(path, body.length, headers), body);
    }

    /** Writes the header of a request with a content length that may be false. */
    static byte[] header(String path, long length, String... headers) {
        StringBuilder text = new StringBuilder("POST " + path + " HTTP/1.1\r\nHost: victim\r\n");
        for (String header : headers) {
            text.append(header).append("\r\n");
        }
        return ascii(text + "Content-Length: " + length + "\r\n\r\n");
    }

    /** Writes an inference request with one binary input and a binary output. */
    static byte[] infer(String model, Tensor input) {
        byte[] json = inferJson(input, input.data().length);
        return post(path(model), concat(json, input.data()), "Inference-Header-Content-Length: " + json.length);
    }

    /** Writes the JSON of an inference, with the size of its tensor, which may be false. */
    static byte[] inferJson(Tensor input, long dataSize) {
        return ascii(
                "{\"id\":\"" + input.id() + "\",\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\""
                        + "INPUT0\",\"datatype\":\"" + input.datatype() + "\",\"shape\":" + input.shapeText()
                        + ",\"parameters\":{\"binary_data_size\":" + dataSize + "}}]}");
    }

    static String path(String model) {
        return "/v2/models/" + model + "/infer";
    }

    static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    static byte[] concat(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }

    /** Sends a request and waits for its response. */
    Response exchange(byte[] request) throws IOException {
        send(request);
        return read();
    }

    void send(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
    }

    void send(byte[] bytes, int from, int length) throws IOException {
        socket.getOutputStream().write(bytes, from, length);
    }

    /** Sets the timeout of reads. */
    RawHttp timeout(int millis) throws IOException {
        socket.setSoTimeout(millis);
        return this;
    }

    /** Waits for a response. */
    Response read() throws IOException {
        Header header = readHeader();
        return new Response(header.status(), header.headers(), body(header.headers()));
    }

    /** Waits for the header of a response. */
    Header readHeader() throws IOException {
        String status = line();
        Map<String, String> headers = new HashMap<>();
        for (String line = line(); !line.isEmpty(); line = line()) {
            int colon = line.indexOf(':');
            headers.put(
                    line.substring(0, colon).toLowerCase(Locale.ROOT),
                    line.substring(colon + 1).strip());
        }
        int code = Integer.parseInt(status.split(" ", 3)[1]);
        return code == 100 ? readHeader() : new Header(code, headers);
    }

    /** Reads and discards bytes. */
    void skip(long bytes) throws IOException {
        in.skipNBytes(bytes);
    }

    /** Waits until the server closes the connection, and discards what it sends before. */
    void awaitEnd() throws IOException {
        in.transferTo(java.io.OutputStream.nullOutputStream());
    }

    /** Resets the connection, as a killed client does. */
    void reset() {
        reset(socket);
    }

    static void reset(Socket socket) {
        try (socket) {
            socket.setSoLinger(true, 0);
        } catch (IOException e) {
            // it is closed
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private byte[] body(Map<String, String> headers) throws IOException {
        if ("chunked".equalsIgnoreCase(headers.get("transfer-encoding"))) {
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            for (int size = Integer.parseInt(line(), 16); size > 0; size = Integer.parseInt(line(), 16)) {
                body.writeBytes(bytes(size));
                line();
            }
            line();
            return body.toByteArray();
        }
        return bytes(Integer.parseInt(headers.getOrDefault("content-length", "0")));
    }

    private byte[] bytes(int size) throws IOException {
        byte[] bytes = in.readNBytes(size);
        if (bytes.length < size) {
            throw new EOFException("end of the connection after " + bytes.length + " of " + size + " bytes of a body");
        }
        return bytes;
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("end of the connection after '" + line + "'");
            }
            if (next != '\r') {
                line.append((char) next);
            }
        }
        return line.toString();
    }

    /** The header of a response. Immutable, except the map, which is never changed. */
    record Header(int status, Map<String, String> headers) {
        long contentLength() {
            return Long.parseLong(headers.getOrDefault("content-length", "0"));
        }
    }

    /** A response. Immutable, except the body, which is never changed. */
    @SuppressWarnings("ArrayRecordComponent") // Never compared.
    record Response(int status, Map<String, String> headers, byte[] body) {
        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }

        /** Returns whether the server will close the connection. */
        boolean announcesClose() {
            return "close".equalsIgnoreCase(headers.get("connection"));
        }

        /** Returns the tensors after the JSON. */
        byte[] tensors() {
            String length = headers.get("inference-header-content-length");
            return length == null
                    ? new byte[0]
                    : java.util.Arrays.copyOfRange(body, Integer.parseInt(length), body.length);
        }
    }
}
