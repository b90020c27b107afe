package dev.nereid.grpc.wire;

import static dev.nereid.grpc.wire.WireReader.BYTES;

import dev.nereid.api.frontend.DirectMappedCache;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Caches parsed request headers of repeated requests. A header is the part of a message before the first tensor; it is
 * cached when it comes for the second time in a row in its slot. Confined to the event loop of its calls.
 *
 * <p>The same bytes are the same message, whatever happened to the models meanwhile; only the tensors behind them are
 * read again. {@link InferMessageReader} reads all other messages, and reports errors.
 */
public final class RequestHeaderCache {
    private static final int MAX_HEADER_BYTES = 2048;

    /**
     * The maximum number of inputs and outputs. It is more than most models have, and few enough for the cached headers
     * to take little memory.
     */
    private static final int MAX_TENSORS = 32;

    /** The tag of a tensor's bytes. */
    private static final int RAW_CONTENTS_TAG = 7 << 3 | BYTES;

    private static final int NOT_CACHEABLE = -1;

    /** The bits of a hash that choose a slot. */
    private static final int SLOT_BITS = 6;

    private final DirectMappedCache<CachedHeader> entries = new DirectMappedCache<>();

    /** A cached request header: its bytes and the parsed message without tensors. Immutable. */
    private record CachedHeader(ByteBuffer bytes, InferMessage message) {
        boolean matches(ByteBuffer other, int length) {
            if (bytes.limit() != length) {
                return false;
            }
            int difference = bytes.mismatch(other);
            return difference < 0 || difference == length;
        }
    }

    /**
     * Reads a request.
     *
     * @param bytes the message, which continues to belong to the caller if this method throws
     * @throws dev.nereid.api.InferenceException if the bytes are no such message
     */
    public InferMessage read(MessageBytes bytes) {
        int length = bytes.length() == 0 ? NOT_CACHEABLE : headerLength(bytes.piece(0));
        if (length == NOT_CACHEABLE) {
            return InferMessageReader.read(bytes);
        }
        ByteBuffer piece = bytes.piece(0);
        int hash = hash(piece, length);
        CachedHeader cached = entries.get(hash);
        if (cached != null && cached.matches(piece, length)) {
            InferMessage header = cached.message;
            List<ByteRange> tensors = tensors(bytes, length, header.inputs().size());
            if (tensors != null) {
                entries.repeats(hash);
                return with(bytes, header, tensors);
            }
        }
        InferMessage message = InferMessageReader.read(bytes);
        if (isCacheable(message) && tensors(bytes, length, message.inputs().size()) != null) {
            if (entries.repeats(hash)) {
                ByteBuffer text = ByteBuffer.allocate(length).put(0, piece, 0, length);
                entries.put(hash, new CachedHeader(text, with(MessageBytes.of(List.of()), message, List.of())));
            }
        }
        return message;
    }

    /**
     * Determines the length of the part before the first tensor.
     *
     * @return {@link #NOT_CACHEABLE} if it is too long, or not as clients write it, or if there is no tensor
     */
    private static int headerLength(ByteBuffer piece) {
        int end = Math.min(piece.limit() - 2, MAX_HEADER_BYTES);
        int at = 0;
        while (at < end) {
            int tag = piece.get(at);
            if (tag == RAW_CONTENTS_TAG) {
                return at;
            }
            int length = piece.get(at + 1);
            if ((tag & 7) != BYTES || tag < 0) {
                return NOT_CACHEABLE;
            }
            at += 2;
            if (length < 0) { // it goes on in the next byte, and no further unless it is too long
                length = (length & 0x7F) + (piece.get(at++) << 7);
                if (length < 0) {
                    return NOT_CACHEABLE;
                }
            }
            at += length;
        }
        return NOT_CACHEABLE;
    }

    private static int hash(ByteBuffer piece, int length) {
        long hash = length;
        int at = 0;
        for (; at <= length - Long.BYTES; at += Long.BYTES) {
            hash = 31 * hash + piece.getLong(at);
        }
        for (; at < length; at++) {
            hash = 31 * hash + piece.get(at);
        }
        hash *= 0x9E37_79B9_7F4A_7C15L;
        // Every bit has an effect on the highest ones only, and the cache takes the slot from the lowest ones.
        return Integer.rotateLeft((int) (hash >>> Integer.SIZE), SLOT_BITS);
    }

    /** Finds the tensors behind a header; {@code null} if there are too many, or anything else. */
    private static @Nullable List<ByteRange> tensors(MessageBytes bytes, int length, int maxCount) {
        List<ByteRange> tensors = new ArrayList<>(maxCount);
        WireReader reader = WireReader.of(bytes, new ByteRange(length, bytes.length() - length));
        while (reader.hasMore()) {
            if (tensors.size() == maxCount || reader.tag() != RAW_CONTENTS_TAG) {
                return null;
            }
            tensors.add(reader.range());
        }
        return tensors;
    }

    /** Ids and parameters usually differ each time; contents are no part of a header. */
    private static boolean isCacheable(InferMessage message) {
        return message.names().id().isEmpty()
                && message.parameters().isEmpty()
                && message.inputs().size() + message.outputs().size() <= MAX_TENSORS
                && message.inputs().stream()
                        .allMatch(input ->
                                input.parameters().isEmpty() && input.contents().isEmpty())
                && message.outputs().stream()
                        .allMatch(output -> output.parameters().isEmpty());
    }

    private static InferMessage with(MessageBytes bytes, InferMessage header, List<ByteRange> tensors) {
        return new InferMessage(bytes, header.names(), header.parameters(), header.inputs(), header.outputs(), tensors);
    }
}
