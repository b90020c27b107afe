package dev.nereid.http;

import io.netty.buffer.AbstractByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;

/**
 * Gives the head of a response a buffer with room for a small body behind it: the transport's encoder then copies the
 * body there, and both are one buffer, which costs less to send than two. Safe for use by any thread, as the allocator
 * is that it takes memory from.
 */
final class RoomyAllocator extends AbstractByteBufAllocator {
    /** A size that the pool has; what it takes for a head without body is free again once that was sent. */
    private static final int ROOM = 4096;

    /**
     * What the encoder asks for when it begins a head is more. It asks for less for the head of a chunk, of which many
     * may wait to be sent.
     */
    private static final int SMALLEST_HEAD = 32;

    private final ByteBufAllocator pool;

    /**
     * Takes memory from a pool.
     *
     * @param pool what the transport uses otherwise
     */
    RoomyAllocator(ByteBufAllocator pool) {
        super(true);
        this.pool = pool;
    }

    @Override
    public ByteBuf buffer(int initialCapacity) {
        return super.buffer(initialCapacity < SMALLEST_HEAD ? initialCapacity : Math.max(initialCapacity, ROOM));
    }

    @Override
    public boolean isDirectBufferPooled() {
        return pool.isDirectBufferPooled();
    }

    @Override
    protected ByteBuf newHeapBuffer(int initialCapacity, int maxCapacity) {
        return pool.heapBuffer(initialCapacity, maxCapacity);
    }

    @Override
    protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
        return pool.directBuffer(initialCapacity, maxCapacity);
    }
}
