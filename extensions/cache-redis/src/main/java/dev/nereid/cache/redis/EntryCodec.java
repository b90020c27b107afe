package dev.nereid.cache.redis;

import dev.nereid.spi.cache.CacheKey;
import io.lettuce.core.codec.RedisCodec;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** Encodes keys as {@code nereid:<32 hexadecimal digits>}, and decodes values into native memory. Immutable. */
final class EntryCodec implements RedisCodec<CacheKey, MemorySegment> {
    private static final String PREFIX = "nereid:";
    private static final int DIGITS = 16;
    private static final long ALIGNMENT = 64;

    @Override
    public ByteBuffer encodeKey(CacheKey key) {
        return ByteBuffer.wrap((PREFIX + key.text()).getBytes(StandardCharsets.US_ASCII));
    }

    /** Not used by the commands of this cache: none of their responses contains a key. */
    @Override
    public CacheKey decodeKey(ByteBuffer bytes) {
        String digits = StandardCharsets.US_ASCII.decode(bytes).toString().substring(PREFIX.length());
        return new CacheKey(
                HexFormat.fromHexDigitsToLong(digits, 0, DIGITS),
                HexFormat.fromHexDigitsToLong(digits, DIGITS, 2 * DIGITS));
    }

    @Override
    public ByteBuffer encodeValue(MemorySegment value) {
        return value.asByteBuffer();
    }

    /**
     * Decodes a value into memory that is freed when it is unreachable. Only the server knows its readers and how long
     * they read.
     */
    @Override
    public MemorySegment decodeValue(ByteBuffer bytes) {
        MemorySegment content = MemorySegment.ofBuffer(bytes);
        return Arena.ofAuto()
                .allocate(content.byteSize(), ALIGNMENT)
                .copyFrom(content)
                .asReadOnly();
    }
}
