package dev.nereid.attacks;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Many connections of one hostile client, on one thread. Its close ends them without notice. Confined to one thread.
 */
final class HostileConnections implements AutoCloseable {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(15);

    /** Number of connects before a pause, so that the machine has time for others. */
    private static final int AT_ONCE = 100;

    private static final Duration BATCH_PAUSE = Duration.ofMillis(40);

    private final List<SocketChannel> channels = new ArrayList<>();

    private HostileConnections() {}

    /** Opens connections; fails if some are not connected after a timeout. */
    static HostileConnections connect(InetSocketAddress address, int count) throws IOException {
        HostileConnections connections = new HostileConnections();
        int connected = connections.tryConnect(address, count, CONNECT_TIMEOUT);
        if (connected < count) {
            connections.close();
            throw new IOException("connected: " + connected + " (expected: " + count + ")");
        }
        return connections;
    }

    /** Starts to open connections, and waits for them until a timeout. */
    static HostileConnections attempt(InetSocketAddress address, int count, Duration timeout) throws IOException {
        HostileConnections connections = new HostileConnections();
        connections.tryConnect(address, count, timeout);
        return connections;
    }

    private int tryConnect(InetSocketAddress address, int count, Duration timeout) throws IOException {
        try (Selector selector = Selector.open()) {
            int connected = 0;
            for (int i = 0; i < count; i++) {
                SocketChannel channel = SocketChannel.open();
                channels.add(channel);
                channel.configureBlocking(false);
                // A client that does not read needs no large receive buffer.
                channel.setOption(StandardSocketOptions.SO_RCVBUF, 16 << 10);
                if (channel.connect(address)) {
                    connected++;
                } else {
                    channel.register(selector, SelectionKey.OP_CONNECT);
                }
                if (i % AT_ONCE == AT_ONCE - 1) {
                    connected += finish(selector, 1);
                    Await.pause(BATCH_PAUSE);
                }
            }
            long end = System.nanoTime() + timeout.toNanos();
            while (connected < count && System.nanoTime() < end) {
                connected += finish(selector, 100);
            }
            return connected;
        }
    }

    private static int finish(Selector selector, int millis) throws IOException {
        selector.select(millis);
        int finished = 0;
        for (SelectionKey key : selector.selectedKeys()) {
            try {
                if (((SocketChannel) key.channel()).finishConnect()) {
                    finished++;
                }
            } catch (IOException e) {
                key.channel().close();
            }
            key.cancel();
        }
        selector.selectedKeys().clear();
        return finished;
    }

    /**
     * Sends the same on each connection, as much as its socket takes at once. Returns how many connections are open.
     */
    int send(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
        int open = 0;
        for (SocketChannel channel : channels) {
            open += write(channel, buffer.rewind()) < 0 ? 0 : 1;
        }
        return open;
    }

    /** Sends the same once on each connection, as their sockets take it, until all went or the time is over. */
    void sendAll(byte[] bytes, Duration time) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
        int[] at = new int[channels.size()];
        long end = System.nanoTime() + time.toNanos();
        boolean isLeft = true;
        while (isLeft && System.nanoTime() < end) {
            isLeft = false;
            for (int i = 0; i < at.length; i++) {
                if (at[i] < bytes.length) {
                    int written = write(channels.get(i), buffer.position(at[i]));
                    at[i] = written < 0 ? bytes.length : at[i] + written;
                    isLeft |= at[i] < bytes.length;
                }
            }
            Await.pause(Duration.ofMillis(5));
        }
    }

    /** Sends the same on each connection over and over, until the time is over. Returns how many bytes went. */
    long flood(byte[] bytes, Duration time) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
        int[] at = new int[channels.size()];
        long sent = 0;
        long end = System.nanoTime() + time.toNanos();
        while (System.nanoTime() < end) {
            long before = sent;
            for (int i = 0; i < at.length; i++) {
                int written = write(channels.get(i), buffer.position(at[i]));
                if (written > 0) {
                    at[i] = (at[i] + written) % bytes.length;
                    sent += written;
                }
            }
            // A busy loop would take the processor from the server.
            Await.pause(Duration.ofMillis(sent == before ? 20 : 1));
        }
        return sent;
    }

    /** Returns how many connections the server has closed. Discards received bytes. */
    int closedByServer() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(64 << 10);
        int closed = 0;
        for (SocketChannel channel : channels) {
            closed += isClosed(channel, buffer) ? 1 : 0;
        }
        return closed;
    }

    /** Returns whether the server has closed all of them. */
    boolean isClosed() {
        return closedByServer() == size();
    }

    int size() {
        return channels.size();
    }

    @Override
    public void close() {
        for (SocketChannel channel : channels) {
            try (channel) {
                channel.setOption(StandardSocketOptions.SO_LINGER, 0);
            } catch (IOException | UnsupportedOperationException e) {
                // it is closed
            }
        }
    }

    private static int write(SocketChannel channel, ByteBuffer bytes) {
        try {
            return channel.isConnected() ? channel.write(bytes) : -1;
        } catch (IOException e) {
            return -1;
        }
    }

    private static boolean isClosed(SocketChannel channel, ByteBuffer buffer) {
        try {
            int read;
            do {
                read = channel.read(buffer.clear());
            } while (read > 0);
            return read < 0;
        } catch (IOException | java.nio.channels.NotYetConnectedException e) {
            return true;
        }
    }
}
