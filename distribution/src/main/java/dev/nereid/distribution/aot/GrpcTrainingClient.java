package dev.nereid.distribution.aot;

import dev.nereid.distribution.process.Endpoint;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * gRPC client that keeps a fixed number of {@code ModelInfer} calls in flight. Implements only as much of HTTP/2 as a
 * server on the same machine needs. Confined to the thread that uses it.
 */
final class GrpcTrainingClient implements AutoCloseable {
    private static final String PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    private static final int IN_FLIGHT = 16;
    private static final int READ_TIMEOUT_MILLIS = 30_000;
    private static final int BUFFER = 64 << 10;
    private static final int MESSAGE_PREFIX = 5;

    private static final int DATA = 0;
    private static final int HEADERS = 1;
    private static final int RST_STREAM = 3;
    private static final int SETTINGS = 4;
    private static final int PING = 6;
    private static final int GOAWAY = 7;
    private static final int WINDOW_UPDATE = 8;

    private static final int END_STREAM = 1;
    private static final int ACK = 1;
    private static final int END_HEADERS = 4;

    /** Received bytes per update of the flow control window. */
    private static final int WINDOW_STEP = 16 << 10;

    /** The header of a call: POST and http of the static table, and four entries that {@link #firstHeader()} added. */
    private static final byte[] HEADER = {(byte) 0x83, (byte) 0x86, (byte) 0xC1, (byte) 0xC0, (byte) 0xBF, (byte) 0xBE};

    private final Socket socket;
    private final DataInputStream in;
    private final DataOutputStream out;
    private final List<byte[]> messages;
    private final int[] idsAt;
    private final int idLength;

    /** Streams that a message was received on and that have not ended. */
    private final Set<Integer> responding = new HashSet<>();

    private long sent;
    private long completed;
    private int received;

    private GrpcTrainingClient(Socket socket, List<byte[]> messages, String id) throws IOException {
        this.socket = socket;
        this.messages = messages;
        idsAt = messages.stream()
                .mapToInt(message -> AotTrainingRequests.indexOf(message, id))
                .toArray();
        idLength = id.length();
        in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), BUFFER));
        out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream(), BUFFER));
    }

    /** Connects to send messages in rotation, each with the number of the call in place of {@code id}. */
    static GrpcTrainingClient connect(Endpoint port, List<byte[]> messages, String id) throws IOException {
        Socket socket = new Socket(port.host(), port.port());
        try {
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(READ_TIMEOUT_MILLIS);
            return new GrpcTrainingClient(socket, messages, id);
        } catch (IOException e) {
            socket.close();
            throw e;
        }
    }

    /** Makes calls while a condition holds, and returns the number of completed calls. Blocks. */
    long run(BooleanSupplier running) throws IOException {
        out.write(PREFACE.getBytes(StandardCharsets.US_ASCII));
        frame(SETTINGS, 0, 0, 0);
        for (int i = 0; i < IN_FLIGHT; i++) {
            call();
        }
        while (completed < sent) {
            if (in.available() == 0) {
                out.flush();
            }
            if (streamEnded() && running.getAsBoolean()) {
                call();
            }
        }
        return completed;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private void call() throws IOException {
        int stream = Math.toIntExact(2 * sent + 1);
        int kind = (int) (sent % messages.size());
        byte[] message = messages.get(kind);
        if (idsAt[kind] >= 0) {
            AotTrainingRequests.number(message, idsAt[kind], idLength, sent);
        }
        byte[] header = sent == 0 ? firstHeader() : HEADER;
        frame(HEADERS, END_HEADERS, stream, header.length);
        out.write(header);
        frame(DATA, END_STREAM, stream, MESSAGE_PREFIX + message.length);
        out.writeByte(0);
        out.writeInt(message.length);
        out.write(message);
        sent++;
    }

    /** Reads a frame, and returns whether it ended a call. Acknowledges the frame where the protocol requires that. */
    private boolean streamEnded() throws IOException {
        int length = in.readUnsignedShort() << 8 | in.readUnsignedByte();
        int type = in.readUnsignedByte();
        int flags = in.readUnsignedByte();
        int stream = in.readInt();
        byte[] payload = in.readNBytes(length);
        switch (type) {
            case SETTINGS -> {
                if ((flags & ACK) == 0) {
                    frame(SETTINGS, ACK, 0, 0);
                }
            }
            case PING -> {
                if ((flags & ACK) == 0) {
                    frame(PING, ACK, 0, length);
                    out.write(payload);
                }
            }
            case DATA -> {
                responding.add(stream);
                updateWindow(length);
            }
            case HEADERS -> {
                if ((flags & END_STREAM) != 0) {
                    if (!responding.remove(stream)) {
                        throw new IOException("gRPC: call ended without a response");
                    }
                    completed++;
                    return true;
                }
            }
            case RST_STREAM, GOAWAY -> throw new IOException("gRPC: frame of type " + type + " (expected: a response)");
            default -> {}
        }
        return false;
    }

    private void updateWindow(int length) throws IOException {
        received += length;
        if (received >= WINDOW_STEP) {
            frame(WINDOW_UPDATE, 0, 0, Integer.BYTES);
            out.writeInt(received);
            received = 0;
        }
    }

    private void frame(int type, int flags, int stream, int length) throws IOException {
        out.writeByte(length >> 16);
        out.writeShort(length);
        out.writeByte(type);
        out.writeByte(flags);
        out.writeInt(stream);
    }

    /** Returns the header of the first call; the server keeps its four texts for {@link #HEADER}. */
    private static byte[] firstHeader() {
        ByteArrayOutputStream header = new ByteArrayOutputStream();
        header.write(0x83);
        header.write(0x86);
        header.write(0x44);
        text(header, "/inference.GRPCInferenceService/ModelInfer");
        header.write(0x41);
        text(header, "localhost");
        header.write(0x40);
        text(header, "te");
        text(header, "trailers");
        header.write(0x5F);
        text(header, "application/grpc");
        return header.toByteArray();
    }

    private static void text(ByteArrayOutputStream header, String text) {
        header.write(text.length());
        header.writeBytes(text.getBytes(StandardCharsets.US_ASCII));
    }
}
