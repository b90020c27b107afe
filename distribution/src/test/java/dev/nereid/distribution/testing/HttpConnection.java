package dev.nereid.distribution.testing;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** An HTTP/1.1 connection to a server that sends exactly the bytes of the test. Confined to one thread. */
public final class HttpConnection implements AutoCloseable {
    private static final int TIMEOUT_MILLIS = 60_000;

    private final Socket socket;
    private final InputStream in;

    private HttpConnection(Socket socket) throws IOException {
        this.socket = socket;
        in = new BufferedInputStream(socket.getInputStream());
    }

    public static HttpConnection to(int port) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(TIMEOUT_MILLIS);
        return new HttpConnection(socket);
    }

    /** Sends a request and waits for its response. */
    public RawHttpResponse exchange(byte[] request) throws IOException {
        send(request, 0, request.length);
        return read();
    }

    public void send(byte[] bytes, int from, int length) throws IOException {
        socket.getOutputStream().write(bytes, from, length);
    }

    /** Waits for a response; fails if there is none for a while. */
    public RawHttpResponse read() throws IOException {
        String status = line();
        Map<String, String> headers = new HashMap<>();
        for (String line = line(); !line.isEmpty(); line = line()) {
            int colon = line.indexOf(':');
            headers.put(
                    line.substring(0, colon).toLowerCase(Locale.ROOT),
                    line.substring(colon + 1).strip());
        }
        return new RawHttpResponse(Integer.parseInt(status.split(" ", 3)[1]), headers, body(headers));
    }

    /** Returns whether the server closed the connection without sending more. Waits for either. */
    public boolean isClosed() throws IOException {
        try {
            return in.read() < 0;
        } catch (SocketException e) {
            return true;
        }
    }

    /** Returns the number of unread bytes. */
    public int unread() throws IOException {
        return in.available();
    }

    /** Resets the connection, as a killed client does. */
    public void abandon() throws IOException {
        socket.setSoLinger(true, 0);
        socket.close();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private byte[] body(Map<String, String> headers) throws IOException {
        if ("chunked".equals(headers.get("transfer-encoding"))) {
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            for (int size = Integer.parseInt(line(), 16); size > 0; size = Integer.parseInt(line(), 16)) {
                body.write(bytes(size));
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
            throw new EOFException("body: " + bytes.length + " bytes (expected: " + size + ")");
        }
        return bytes;
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("connection closed after '" + line.toString(StandardCharsets.US_ASCII) + "'");
            }
            if (next != '\r') {
                line.write(next);
            }
        }
        return line.toString(StandardCharsets.US_ASCII);
    }
}
