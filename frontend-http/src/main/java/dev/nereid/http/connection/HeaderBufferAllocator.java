package dev.nereid.http.connection;

import io.netty.buffer.AbstractByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;

/**
 * Allocates response header buffers with space for a small body. As safe for use by several threads as the pool that it
 * allocates from.
 */
final class HeaderBufferAllocator extends AbstractByteBufAllocator {
    /** A size class of the pool. The unused part is free again once a header without body was sent. */
    private static final int MIN_BUFFER_BYTES = 4096;

    /**
     * The minimum capacity that the encoder allocates for a response header. It allocates less for the header of a
     * chunk, of which many may wait to be sent.
     */
    private static final int MIN_HEADER_CAPACITY = 32;

    private final ByteBufAllocator pool;

    /** Creates an allocator over the one that the transport uses otherwise. */
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
