package dev.nereid.http.connection;

import io.netty.buffer.AbstractByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;

/**
 * Allocates response header buffers with space for a small body. Safe for use by any thread, as the allocator is that
 * it takes memory from.
 */
final class HeaderBufferAllocator extends AbstractByteBufAllocator {
    /** A size that the pool has; what it takes for a head without body is free again once that was sent. */
    private static final int MIN_BUFFER_BYTES = 4096;

    /**
     * What the encoder asks for when it begins a head is more. It asks for less for the head of a chunk, of which many
     * may wait to be sent.
     */
    private static final int MIN_HEADER_CAPACITY = 32;

    private final ByteBufAllocator pool;

    /**
     * Takes memory from a pool.
     *
     * @param pool what the transport uses otherwise
     */
    HeaderBufferAllocator(ByteBufAllocator pool) {
        super(true);
        this.pool = pool;
    }

    @Override
    public ByteBuf buffer(int initialCapacity) {
        return super.buffer(
                initialCapacity < MIN_HEADER_CAPACITY ? initialCapacity : Math.max(initialCapacity, MIN_BUFFER_BYTES));
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
