package dev.nereid.grpc;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A client that writes raw HTTP/2 frames. Confined to the thread of the test. */
final class RawHttp2 implements AutoCloseable {
    static final int DATA = 0;
    static final int HEADERS = 1;
    static final int PRIORITY = 2;
    static final int RST_STREAM = 3;
    static final int SETTINGS = 4;
    static final int PING = 6;
    static final int GOAWAY = 7;
    static final int WINDOW_UPDATE = 8;
    static final int END_STREAM = 1;
    static final int END_HEADERS = 4;

    private static final String PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    private static final int TIMEOUT_MILLIS = 20_000;

    private final Socket socket;
    private final DataInputStream input;
    private final BufferedOutputStream output;

    /** A frame of the server. Its payload is text, since most headers of errors are not compressed. */
    record Frame(int type, int flags, int stream, String text) {}

    private RawHttp2(int port) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setSoTimeout(TIMEOUT_MILLIS);
        input = new DataInputStream(socket.getInputStream());
        output = new BufferedOutputStream(socket.getOutputStream(), 1 << 16);
    }

    /** Connects and sends nothing more. */
    static RawHttp2 silent(int port) throws IOException {
        return new RawHttp2(port);
    }

    /** Connects with a window of so many bytes for each response. */
    static RawHttp2 connect(int port, int window) throws IOException {
        RawHttp2 client = new RawHttp2(port);
        client.output.write(PREFACE.getBytes(StandardCharsets.US_ASCII));
        client.frame(
                SETTINGS,
                0,
                0,
                ByteBuffer.allocate(6).putShort((short) 4).putInt(window).array());
        return client;
    }

    void frame(int type, int flags, int stream, byte... payload) throws IOException {
        write(type, flags, stream, payload);
        output.flush();
    }

    private void write(int type, int flags, int stream, byte[] payload) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(9 + payload.length);
        frame.put((byte) (payload.length >> 16)).putShort((short) payload.length);
        frame.put((byte) type).put((byte) flags).putInt(stream).put(payload);
        output.write(frame.array());
    }

    /** Opens a call of ModelInfer. */
    void headers(int stream) throws IOException {
        writeHeaders(stream);
        output.flush();
    }

    private void writeHeaders(int stream) throws IOException {
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        header(block, ":method", "POST");
        header(block, ":scheme", "http");
        header(block, ":path", "/inference.GRPCInferenceService/ModelInfer");
        header(block, ":authority", "test");
        header(block, "te", "trailers");
        header(block, "content-type", "application/grpc");
        write(HEADERS, END_HEADERS, stream, block.toByteArray());
    }

    /** Ends a call with headers. */
    void trailers(int stream) throws IOException {
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        header(block, "some", "trailer");
        frame(HEADERS, END_HEADERS | END_STREAM, stream, block.toByteArray());
    }

    private static void header(ByteArrayOutputStream block, String name, String value) throws IOException {
        block.write(0); // literal, not indexed
        block.write(name.length());
        block.write(name.getBytes(StandardCharsets.US_ASCII));
        block.write(value.length());
        block.write(value.getBytes(StandardCharsets.US_ASCII));
    }

    /** Sends a whole request. */
    void call(int stream, byte... message) throws IOException {
        writeCall(stream, message);
        output.flush();
    }

    /** Sends whole requests at once: the server may close the connection as soon as it has read some of them. */
    void calls(int count, byte... message) throws IOException {
        for (int call = 0; call < count; call++) {
            writeCall(2 * call + 1, message);
        }
        output.flush();
    }

    private void writeCall(int stream, byte[] message) throws IOException {
        writeHeaders(stream);
        ByteBuffer data = ByteBuffer.allocate(5 + message.length);
        data.put((byte) 0).putInt(message.length).put(message);
        write(DATA, END_STREAM, stream, data.array());
    }

    /** Reads the next frame. */
    Frame read() throws IOException {
        int length = input.readUnsignedByte() << 16 | input.readUnsignedShort();
        int type = input.readUnsignedByte();
        int flags = input.readUnsignedByte();
        int stream = input.readInt();
        byte[] payload = new byte[length];
        input.readFully(payload);
        return new Frame(type, flags, stream, new String(payload, StandardCharsets.ISO_8859_1));
    }

    /** Reads until a frame of this type arrives. */
    Frame readUntil(int type) throws IOException {
        Frame frame = read();
        while (frame.type() != type) {
            frame = read();
        }
        return frame;
    }

    /** Waits until the server has read all frames sent so far. */
    void awaitRead() throws IOException {
        frame(PING, 0, 0, new byte[8]);
        readUntil(PING);
    }

    /** Reads until the server closes the connection. */
    void readToEnd() throws IOException {
        try {
            while (true) {
                read();
            }
        } catch (EOFException | SocketException _) {
            return; // a reset is an end too
        }
    }

    /** Closes the connection. Repeated closing does nothing. */
    void disconnect() throws IOException {
        socket.close();
    }

    @Override
    public void close() throws IOException {
        disconnect();
    }
}
