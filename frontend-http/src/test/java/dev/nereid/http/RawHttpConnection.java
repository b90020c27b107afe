package dev.nereid.http;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** An HTTP client connection that sends raw bytes. Confined to one thread. */
public final class RawHttpConnection implements AutoCloseable {
    private static final int TIMEOUT_MILLIS = 20_000;

    private final Socket socket;
    private final InputStream in;

    public RawHttpConnection(int port) throws IOException {
        this(new Socket(InetAddress.getLoopbackAddress(), port));
    }

    /** Wraps a connected socket, and owns it. */
    public RawHttpConnection(Socket connected) throws IOException {
        socket = connected;
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(TIMEOUT_MILLIS);
        in = new BufferedInputStream(socket.getInputStream());
    }

    /** A response. */
    public @SuppressWarnings("ArrayRecordComponent") // Never compared as a whole.
    record Response(int status, Map<String, String> headers, byte[] body) {
        public String text() {
            return new String(body, StandardCharsets.UTF_8);
        }

        public String header(String name) {
            return headers.getOrDefault(name, "");
        }
    }

    public static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    public static byte[] join(byte[]... parts) {
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            whole.writeBytes(part);
        }
        return whole.toByteArray();
    }

    /** Sends a request with a body of known size; each further header line ends with CR LF. */
    public RawHttpConnection post(String path, String headers, byte[] body) throws IOException {
        return send(join(
                bytes("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "Content-Length: " + body.length
                        + "\r\n\r\n"),
                body));
    }

    public RawHttpConnection request(String method, String path) throws IOException {
        return send(bytes(method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"));
    }

    public RawHttpConnection send(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        socket.getOutputStream().flush();
        return this;
    }

    public Response receive() throws IOException {
        Response header = receiveHeader();
        int length = Integer.parseInt(header.headers().getOrDefault("content-length", "0"));
        byte[] body = in.readNBytes(length);
        if (body.length < length) {
            throw new EOFException("body: " + body.length + " bytes (expected: " + length + ")");
        }
        return new Response(header.status(), header.headers(), body);
    }

    /** Receives the response that an action causes. */
    public Response receiveAfter(Runnable action) throws IOException {
        action.run();
        return receive();
    }

    /** Receives the status and headers of a response. */
    public Response receiveHeader() throws IOException {
        String[] status = readLine().split(" ", 3);
        Map<String, String> headers = new TreeMap<>();
        for (String line = readLine(); !line.isEmpty(); line = readLine()) {
            int colon = line.indexOf(':');
            headers.put(
                    line.substring(0, colon).toLowerCase(Locale.ROOT),
                    line.substring(colon + 1).strip());
        }
        return new Response(Integer.parseInt(status[1]), headers, new byte[0]);
    }

    /** Receives the next chunk of a chunked body; the last chunk is empty. */
    public String receiveChunk() throws IOException {
        int length = Integer.parseInt(readLine(), 16);
        String chunk = new String(in.readNBytes(length), StandardCharsets.UTF_8);
        readLine();
        return chunk;
    }

    /** Reads until the server closes the connection; returns the number of bytes. */
    public long readToTheEnd() throws IOException {
        long read = 0;
        try {
            for (byte[] buffer = new byte[1 << 16]; ; ) {
                int more = in.read(buffer);
                if (more < 0) {
                    return read;
                }
                read += more;
            }
        } catch (SocketException e) {
            return read;
        }
    }

    /** Waits for a byte or the end; returns whether the server closed the connection without another byte. */
    public boolean isClosedByServer() throws IOException {
        try {
            return in.read() < 0;
        } catch (SocketException e) {
            return true;
        }
    }

    /** Returns whether neither a byte nor the end of the connection arrives within a time. */
    public boolean isQuietFor(int millis) throws IOException {
        socket.setSoTimeout(millis);
        try {
            in.read();
            return false;
        } catch (SocketTimeoutException e) {
            return true;
        } finally {
            socket.setSoTimeout(TIMEOUT_MILLIS);
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private String readLine() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("closed after: " + line.toString(StandardCharsets.UTF_8));
            }
            line.write(next);
        }
        return line.toString(StandardCharsets.UTF_8).stripTrailing();
    }
}
