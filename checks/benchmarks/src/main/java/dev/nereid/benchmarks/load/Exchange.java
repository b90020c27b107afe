package dev.nereid.benchmarks.load;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.OptionalInt;
import javax.net.SocketFactory;

/** One HTTP exchange on a separate connection, cheap enough for polling. */
public final class Exchange {
    private static final int TIMEOUT_MILLIS = 10_000;
    private static final int STATUS_AT = "HTTP/1.1 ".length();
    private static final int STATUS_END = STATUS_AT + "200".length();

    private Exchange() {}

    public static byte[] get(String path) {
        return bytes("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    }

    public static byte[] post(String path, String json) {
        return bytes("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\nContent-Length: " + bytes(json).length + "\r\n\r\n" + json);
    }

    /**
     * Sends a request to a port of this machine and waits for the response. Blocks. Returns its status; empty if the
     * port is closed or the connection ends without a response.
     */
    public static OptionalInt status(SocketFactory sockets, int port, byte[] request) throws IOException {
        try (Socket socket = sockets.createSocket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(TIMEOUT_MILLIS);
            socket.getOutputStream().write(request);
            BufferedReader reader =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            String line = reader.readLine();
            return line == null || line.length() < STATUS_END
                    ? OptionalInt.empty()
                    : OptionalInt.of(Integer.parseInt(line.substring(STATUS_AT, STATUS_END)));
        } catch (SocketException nobodyListens) {
            return OptionalInt.empty();
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
