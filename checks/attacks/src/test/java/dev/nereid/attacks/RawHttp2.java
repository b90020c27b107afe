package dev.nereid.attacks;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URLDecoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * An HTTP/2 connection for gRPC calls. It follows the protocol, except in the frames by which a test violates it.
 * Received frames are read while a call waits for them. Confined to one thread, except reset and close.
 */
final class RawHttp2 implements AutoCloseable {
    private static final int WINDOW = 1 << 30;
    private static final int MAX_FRAME = 16_384;
    private static final int NO_GOAWAY = Integer.MAX_VALUE;

    private final Socket socket;
    private final DataInputStream in;
    private final Map<Integer, Call> open = new LinkedHashMap<>();
    private final Map<Integer, Integer> sendWindows = new HashMap<>();
    private int connectionWindow = 65_535;
    private int initialWindow = 65_535;
    private long received;
    private int nextStream = 1;
    private int lastStream = NO_GOAWAY;
    private boolean leaving;
    private String goAwayText = "";

    private RawHttp2(Socket socket) throws IOException {
        this.socket = socket;
        in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
    }

    static RawHttp2 connect(InetSocketAddress address) throws IOException {
        return over(RawHttp.socket(address));
    }

    /** Begins to talk on a connection. */
    static RawHttp2 over(Socket socket) throws IOException {
        RawHttp2 connection = withWindow(socket, WINDOW);
        connection.send(Frames.windowUpdate(0, WINDOW));
        return connection;
    }

    /** Starts a connection with an initial window of so many bytes for each call, and 64 KB for all. */
    static RawHttp2 withWindow(Socket socket, int window) throws IOException {
        RawHttp2 connection = new RawHttp2(socket);
        connection.send(Frames.preface(window));
        return connection;
    }

    /** Allows more of a call. */
    void openWindow(Call call) throws IOException {
        send(RawHttp.concat(Frames.windowUpdate(0, WINDOW), Frames.windowUpdate(call.stream, WINDOW)));
    }

    /** Sets the timeout of reads. */
    void timeout(int millis) throws IOException {
        socket.setSoTimeout(millis);
    }

    /** Makes a call with one message and waits for its end. */
    Call call(String path, byte[] message) throws IOException {
        return await(begin(path, InferMessage.framed(message)));
    }

    /** Makes a call with the given bytes after its headers, without waiting. */
    Call begin(String path, byte[] framed) throws IOException {
        return begin(path, framed, true);
    }

    Call begin(String path, byte[] framed, boolean ends, String... headers) throws IOException {
        int stream = nextStream;
        nextStream += 2;
        Call call = new Call(stream);
        open.put(stream, call);
        sendWindows.put(stream, initialWindow);
        send(Frames.call(stream, path, headers));
        sendData(call, framed, ends);
        return call;
    }

    /** Sends more of a call, as its window allows, unless the server ends it before. */
    void sendData(Call call, byte[] bytes, boolean ends) throws IOException {
        int at = 0;
        do {
            int window = Math.min(connectionWindow, sendWindows.get(call.stream));
            int size = Math.min(bytes.length - at, Math.min(window, MAX_FRAME));
            if (bytes.length == 0 && !ends) {
                return;
            }
            if (size > 0 || bytes.length == 0) {
                boolean last = ends && at + size == bytes.length;
                byte[] header = Frames.frame(Frames.DATA, last ? Frames.END_STREAM : 0, call.stream, size, new byte[0]);
                send(header);
                socket.getOutputStream().write(bytes, at, size);
                at += size;
                connectionWindow -= size;
                sendWindows.merge(call.stream, -size, Integer::sum);
            } else {
                readFrame();
            }
        } while (at < bytes.length && !call.ended());
    }

    /** Ends a call on the client's side. */
    void cancel(Call call) throws IOException {
        open.remove(call.stream);
        send(Frames.reset(call.stream));
    }

    /** Waits for the end of a call. */
    Call await(Call call) throws IOException {
        while (!call.ended()) {
            readFrame();
        }
        return call;
    }

    /** Waits for the first message of a call, or its end. */
    Call awaitMessage(Call call) throws IOException {
        while (!call.ended() && call.message().length == 0) {
            readFrame();
        }
        return call;
    }

    /** Waits until the server closes the connection. Returns the last message of the server. */
    String awaitEnd() {
        try {
            while (true) {
                readFrame();
            }
        } catch (IOException e) {
            return goAwayText.isEmpty() ? String.valueOf(e) : goAwayText;
        }
    }

    void send(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
    }

    /** Returns the calls that have not ended. */
    Set<Integer> openStreams() {
        return open.keySet();
    }

    /** Returns whether the server accepts no more calls on this connection. */
    boolean isLeaving() {
        return leaving;
    }

    /** Returns the last call that the server accepts, as far as announced. */
    int lastStream() {
        return lastStream;
    }

    /** Resets the connection. */
    void reset() {
        RawHttp.reset(socket);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    /** Reads and handles one frame. */
    void readFrame() throws IOException {
        int lengthAndType = in.readInt();
        int flags = in.readUnsignedByte();
        int stream = in.readInt();
        byte[] payload = new byte[lengthAndType >>> 8];
        in.readFully(payload);
        ByteBuffer fields = ByteBuffer.wrap(payload);
        switch (lengthAndType & 255) {
            case Frames.DATA -> data(stream, flags, payload);
            case Frames.HEADERS -> headers(stream, flags, payload);
            case Frames.RST_STREAM -> end(stream, call -> call.resetCode = fields.getInt());
            case Frames.SETTINGS -> settings(flags, fields);
            case Frames.PING -> {
                if ((flags & Frames.ACK) == 0) {
                    send(Frames.frame(Frames.PING, Frames.ACK, 0, payload));
                }
            }
            case Frames.GOAWAY -> {
                leaving = true;
                lastStream = fields.getInt();
                goAwayText = "GOAWAY " + fields.getInt() + " "
                        + new String(payload, 8, payload.length - 8, StandardCharsets.UTF_8);
            }
            case Frames.WINDOW_UPDATE -> {
                int more = fields.getInt();
                if (stream == 0) {
                    connectionWindow += more;
                } else {
                    sendWindows.computeIfPresent(stream, (_, window) -> window + more);
                }
            }
            default -> {
                // nothing that matters here
            }
        }
    }

    private void data(int stream, int flags, byte[] payload) throws IOException {
        received += payload.length;
        if (received > WINDOW / 2) {
            send(Frames.windowUpdate(0, (int) received));
            received = 0;
        }
        Call call = open.get(stream);
        if (call != null && !call.discards) {
            call.body.writeBytes(payload);
        }
        if ((flags & Frames.END_STREAM) != 0) {
            end(stream, _ -> {});
        }
    }

    private void headers(int stream, int flags, byte[] payload) throws IOException {
        Map<String, String> read = Hpack.decode(payload);
        Call call = open.get(stream);
        if (call != null) {
            call.headers.putAll(read);
        }
        if ((flags & Frames.END_STREAM) != 0) {
            end(stream, _ -> {});
        }
    }

    private void settings(int flags, ByteBuffer fields) throws IOException {
        if ((flags & Frames.ACK) != 0) {
            return;
        }
        while (fields.hasRemaining()) {
            int setting = fields.getShort();
            int value = fields.getInt();
            if (setting == Frames.INITIAL_WINDOW_SIZE) {
                int more = value - initialWindow;
                initialWindow = value;
                sendWindows.replaceAll((_, window) -> window + more);
            }
        }
        send(Frames.frame(Frames.SETTINGS, Frames.ACK, 0, new byte[0]));
    }

    private void end(int stream, java.util.function.Consumer<Call> how) {
        Call call = open.remove(stream);
        sendWindows.remove(stream);
        if (call != null) {
            how.accept(call);
            call.ended = true;
        }
    }

    /** A call with its response so far. Confined to the connection's thread. */
    static final class Call {
        static final int OK = 0;
        static final int UNAVAILABLE = 14;

        /** No status at all: the call was reset, or is not over. */
        static final int NONE = -1;

        private final int stream;
        private final Map<String, String> headers = new HashMap<>();
        private final ByteArrayOutputStream body = new ByteArrayOutputStream();
        private int resetCode = -1;
        private boolean ended;
        private boolean discards;

        private Call(int stream) {
            this.stream = stream;
        }

        int stream() {
            return stream;
        }

        boolean ended() {
            return ended;
        }

        int status() {
            return Integer.parseInt(headers.getOrDefault("grpc-status", Integer.toString(NONE)));
        }

        Map<String, String> headers() {
            return headers;
        }

        /** Returns how the call ended: the status' text, or the code it was reset with. */
        String text() {
            return headers.containsKey("grpc-status")
                    ? URLDecoder.decode(
                            headers.getOrDefault("grpc-message", "").replace("+", "%2B"), StandardCharsets.UTF_8)
                    : "reset " + resetCode + " " + headers;
        }

        /** Returns the first message; empty if there is none yet. */
        byte[] message() {
            byte[] all = body.toByteArray();
            if (all.length < 5 || all.length < 5 + ByteBuffer.wrap(all, 1, 4).getInt()) {
                return new byte[0];
            }
            return java.util.Arrays.copyOfRange(
                    all, 5, 5 + ByteBuffer.wrap(all, 1, 4).getInt());
        }

        /** Returns everything that was received, and not discarded. */
        byte[] body() {
            return body.toByteArray();
        }

        /** Returns the number of received messages. */
        int messages() {
            ByteBuffer all = ByteBuffer.wrap(body.toByteArray());
            int count = 0;
            while (all.remaining() >= 5) {
                all.get();
                int size = all.getInt();
                all.position(Math.min(all.limit(), all.position() + size));
                count++;
            }
            return count;
        }

        /** Keeps no messages from now on. */
        void discardMessages() {
            discards = true;
        }
    }
}
