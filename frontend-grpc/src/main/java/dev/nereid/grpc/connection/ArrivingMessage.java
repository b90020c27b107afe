package dev.nereid.grpc.connection;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.FastThreadLocal;
import org.jspecify.annotations.Nullable;

/**
 * Tracks one stream's partly received message and the memory that it takes. Confined to the event loop of its
 * connection.
 *
 * <p>gRPC keeps the whole message of a unary call until the client has ended the request, so it is counted until then.
 */
final class ArrivingMessage {
    /** One byte for the compression flag and four for the length of the message. */
    private static final int HEADER_BYTES = 5;

    /** The message of the frame that the thread handles; {@code null} if the message came in one frame. */
    static final FastThreadLocal<@Nullable ArrivingMessage> CURRENT = new FastThreadLocal<>();

    private int header;
    private long length;
    private long left;
    private long arrived;

    /** The memory that the message takes besides its bytes. */
    private long slack;

    /** {@code true} if gRPC keeps whole messages. */
    private final boolean isUnary;

    /** The memory of whole messages that gRPC keeps. */
    private long kept;

    /** Bytes that are counted in tensor memory for this stream. */
    private long counted;

    /** {@code true} if the stream was refused; further data of it is dropped. */
    private boolean refused;

    /** {@code true} if the server closed the refused stream before its client ended it. */
    private boolean cutOff;

    ArrivingMessage(boolean isUnary) {
        this.isUnary = isUnary;
    }

    /** Says whether a frame is one whole message. */
    static boolean isWhole(ByteBuf frame) {
        int size = frame.readableBytes();
        return size >= HEADER_BYTES && (frame.getInt(frame.readerIndex() + 1) & 0xFFFF_FFFFL) == size - HEADER_BYTES;
    }

    /** Counts a frame without reading it. Returns whether the frame completes a message. */
    boolean add(ByteBuf frame) {
        boolean isWhole = false;
        int at = frame.readerIndex();
        int end = frame.writerIndex();
        while (at < end) {
            if (left > 0) {
                int step = (int) Math.min(left, end - at);
                at += step;
                left -= step;
                arrived += step;
            } else {
                byte next = frame.getByte(at++);
                length = header == 0 ? 0 : (length << Byte.SIZE) | (next & 0xFF);
                header++;
                arrived++;
                left = header == HEADER_BYTES ? length : 0;
            }
            if (header == HEADER_BYTES && left == 0) {
                kept += isUnary ? arrived + slack : 0;
                header = 0;
                arrived = 0;
                slack = 0;
                isWhole = true;
            }
        }
        return isWhole;
    }

    /** Records that the client has ended the request: gRPC keeps nothing from now on. */
    void end() {
        kept = 0;
    }

    /** Returns the number of bytes to count; {@code unread} are the bytes that gRPC has not read. */
    long held(long unread) {
        long held = Math.max(arrived, unread);
        return kept + (held + kept == 0 ? 0 : held + slack);
    }

    /** Says whether the next byte is the first of a message. */
    boolean isBetweenMessages() {
        return header == 0;
    }

    /** Returns how many bytes have arrived of a message that is not complete. */
    long arrived() {
        return arrived;
    }

    /** Adds to the memory that the message takes besides its bytes. */
    void addSlack(long bytes) {
        slack += bytes;
    }

    long counted() {
        return counted;
    }

    void count(long bytes) {
        counted = bytes;
    }

    /** Transfers the count of bytes to the caller. Returns false if fewer bytes are counted here. */
    boolean transfer(long bytes) {
        if (counted < bytes) {
            return false;
        }
        counted -= bytes;
        return true;
    }

    boolean isRefused() {
        return refused;
    }

    void refuse() {
        refused = true;
    }

    boolean isCutOff() {
        return cutOff;
    }

    void cutOff() {
        cutOff = true;
    }
}
