package dev.nereid.backend.python.process;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.posix.SocketCalls;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * The frames of one process, over a connected socket.
 *
 * <p>Frames are sent without blocking. What the socket does not take is queued, and sent by a task that waits for the socket.
 * The channel of a process that does not read until the queue is full is lost. One thread at a time receives.
 */
final class Channel implements FrameSink {
    /** The longest wait for frames of a thread that does not wait as long as it takes. */
    static final Duration PATIENCE = Duration.ofMillis(2);

    /** The number of bytes that wait for the process from which on no frame is added: the last one may be of any size. */
    private static final long MAX_QUEUED = 256L << 20;

    private static final int INITIAL_BUFFER = 64 << 10;
    private static final int KEPT_BUFFER = 1 << 20;
    private static final int MIB_SHIFT = 20;
    private static final int POLL_MILLIS = 200;
    private static final int IDLE_MILLIS = 60_000;
    private static final long FRAME_LIMIT = (1L << 31) - 8;

    private final int socket;
    private final Executor executor;
    private final Consumer<String> lost;
    private final ReentrantLock sending = new ReentrantLock();
    private final MemorySegment sendState = SocketCalls.newState(Arena.ofAuto());
    private final MemorySegment receiveState = SocketCalls.newState(Arena.ofAuto());
    private final FrameReader reader = new FrameReader();

    @GuardedBy("sending")
    private final ArrayDeque<MemorySegment> queue = new ArrayDeque<>();

    @GuardedBy("sending")
    private long queuedBytes;

    @GuardedBy("sending")
    private boolean flushing;

    /** Threads that use the descriptor without the lock: the one that receives, and the one that waits to send. */
    @GuardedBy("sending")
    private int users;

    @GuardedBy("sending")
    private boolean gone;

    @GuardedBy("sending")
    private boolean closed;

    private MemorySegment buffer = Arena.ofAuto().allocate(INITIAL_BUFFER);
    private long filled;

    /**
     * Creates the channel.
     *
     * @param socket the descriptor, owned by the channel from now on
     * @param executor runs the task that waits for a socket that is full
     * @param lost gets the reason when frames cannot be sent any more, although the process has not closed the socket; called
     *     by a thread that sends
     * @throws IOException if the socket cannot be used
     */
    Channel(int socket, Executor executor, Consumer<String> lost) throws IOException {
        SocketCalls.limitReceive(socket, PATIENCE);
        this.socket = socket;
        this.executor = executor;
        this.lost = lost;
    }

    @Override
    public void send(FrameWriter frame) {
        boolean flush = false;
        String problem = null;
        sending.lock();
        try {
            if (gone) {
                return;
            }
            MemorySegment rest = frame.frame();
            if (queue.isEmpty()) {
                rest = sendNow(rest);
            }
            if (rest.byteSize() > 0 && !gone) {
                flush = enqueue(rest);
                problem = flush || !gone ? null : "it did not read " + (MAX_QUEUED >> MIB_SHIFT) + " MiB of messages";
            }
        } catch (OutOfMemoryError e) { // a part of the frame may have been sent
            markGone();
            problem = "no memory was left for a message to it";
        } finally {
            sending.unlock();
        }
        if (flush) {
            startFlush();
        } else if (problem != null) {
            lost.accept(problem);
        }
    }

    @GuardedBy("sending")
    private MemorySegment sendNow(MemorySegment bytes) {
        MemorySegment rest = bytes;
        while (rest.byteSize() > 0) {
            long sent = SocketCalls.send(sendState, socket, rest);
            if (sent == SocketCalls.FULL) {
                break;
            } else if (sent == SocketCalls.GONE) {
                markGone();
                break;
            }
            rest = rest.asSlice(sent);
        }
        return rest;
    }

    @GuardedBy("sending")
    private boolean enqueue(MemorySegment rest) {
        if (queuedBytes > MAX_QUEUED) {
            markGone();
            return false;
        }
        queue.add(Arena.ofAuto().allocate(rest.byteSize()).copyFrom(rest));
        queuedBytes += rest.byteSize();
        boolean start = !flushing;
        flushing = true;
        return start;
    }

    private void startFlush() {
        try {
            executor.execute(this::flush);
        } catch (RejectedExecutionException | OutOfMemoryError e) {
            shutdown();
            lost.accept("no thread was left that could send messages to it");
        }
    }

    private void flush() {
        if (!use()) {
            return;
        }
        try {
            while (flushOnce()) {
                SocketCalls.awaitWritable(socket, POLL_MILLIS);
            }
        } finally {
            release();
        }
    }

    /** Sends what the socket takes, and returns whether something is left. */
    private boolean flushOnce() {
        sending.lock();
        try {
            while (!gone && !queue.isEmpty()) {
                MemorySegment first = queue.element();
                MemorySegment rest = sendNow(first);
                queuedBytes -= first.byteSize() - rest.byteSize();
                queue.remove();
                if (rest.byteSize() > 0) {
                    queue.addFirst(rest);
                    return !gone;
                }
            }
            flushing = false;
            return false;
        } finally {
            sending.unlock();
        }
    }

    /**
     * Receives available bytes, waits if there are none, and passes each whole frame to the consumer. For one thread at
     * a time.
     *
     * @param waits whether this waits as long as it takes, or for {@link #PATIENCE} at most
     * @param frames receives frames, which are valid during the call
     * @return whether the channel is still open
     * @throws FrameException if a frame has no valid header, and as the consumer
     */
    boolean receive(boolean waits, Consumer<FrameReader> frames) {
        if (!use()) {
            return false;
        }
        try {
            while (waits && !SocketCalls.awaitReadable(socket, IDLE_MILLIS)) {
                // Nothing has come.
            }
            long received = SocketCalls.receive(receiveState, socket, buffer.asSlice(filled));
            if (received == SocketCalls.GONE) {
                return false;
            } else if (received == SocketCalls.LATE) {
                return true;
            }
            filled += received;
        } finally {
            release();
        }
        long position = 0;
        long length = FrameType.HEADER_SIZE;
        while (filled - position >= FrameType.HEADER_SIZE) {
            length = FrameReader.lengthAt(buffer, position);
            if (length < FrameType.HEADER_SIZE || (length & 7) != 0 || length > FRAME_LIMIT) {
                throw new FrameException("length of a frame: " + length + " (expected: a multiple of 8, at least "
                        + FrameType.HEADER_SIZE + ")");
            }
            if (filled - position < length) {
                break;
            }
            frames.accept(reader.of(buffer, position, length));
            position += length;
            length = FrameType.HEADER_SIZE;
        }
        keep(position, length);
        return true;
    }

    /**
     * Keeps the bytes of a frame that is not whole; memory grows with the bytes that have arrived, not with the claimed
     * length.
     */
    private void keep(long position, long length) {
        long rest = filled - position;
        if (rest == buffer.byteSize()) {
            MemorySegment larger = Arena.ofAuto().allocate(Math.min(Math.max(length, 2 * rest), 2 * buffer.byteSize()));
            MemorySegment.copy(buffer, position, larger, 0, rest);
            buffer = larger;
        } else if (rest == 0 && buffer.byteSize() > KEPT_BUFFER) {
            buffer = Arena.ofAuto().allocate(INITIAL_BUFFER);
        } else if (position > 0 && rest > 0) {
            MemorySegment.copy(buffer, position, buffer, 0, rest);
        }
        filled = rest;
    }

    /** Ends both directions: the receiving thread gets the bytes that have arrived, and then the end. */
    void shutdown() {
        sending.lock();
        try {
            if (!closed) {
                markGone();
            }
        } finally {
            sending.unlock();
        }
    }

    @GuardedBy("sending")
    private void markGone() {
        gone = true;
        queue.clear();
        queuedBytes = 0;
        SocketCalls.shutdown(socket);
    }

    /** Closes the socket. Later frames are dropped. Later calls do nothing. */
    void close() {
        sending.lock();
        try {
            if (!closed) {
                markGone();
                closed = true;
                if (users == 0) {
                    SocketCalls.close(socket);
                }
            }
        } finally {
            sending.unlock();
        }
    }

    private boolean use() {
        sending.lock();
        try {
            if (!closed) {
                users++;
            }
            return !closed;
        } finally {
            sending.unlock();
        }
    }

    private void release() {
        sending.lock();
        try {
            users--;
            if (closed && users == 0) {
                SocketCalls.close(socket);
            }
        } finally {
            sending.unlock();
        }
    }
}
