package dev.nereid.http.body;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Compresses a body in gzip or zlib format. Confined to one thread. */
final class BodyDeflater {
    private static final int PIECE_SIZE = 64 << 10;
    /** Deflated, no flags, no time, no extra flags, made on Unix: what zlib writes. */
    private static final byte[] GZIP_HEADER = {0x1F, (byte) 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};

    private final Deflater deflater;
    private final CRC32 checksum = new CRC32();
    private final List<ByteBuf> pieces = new ArrayList<>();
    private final BooleanSupplier abandoned;
    private long size;

    private BodyDeflater(Deflater deflater, BooleanSupplier abandoned) {
        this.deflater = deflater;
        this.abandoned = abandoned;
    }

    /**
     * Compresses a body.
     *
     * @param coding the format, not {@link ContentCoding#IDENTITY}
     * @param parts the parts of the body, which the caller goes on owning
     * @param abandoned whether the client is gone
     * @return the compressed body, to be released by the caller
     * @throws CancellationException if the client is gone
     */
    static List<ByteBuf> compress(ContentCoding coding, List<ByteBuf> parts, BooleanSupplier abandoned) {
        boolean gzip = coding == ContentCoding.GZIP;
        Deflater deflater = new Deflater(Deflater.DEFAULT_COMPRESSION, gzip);
        BodyDeflater body = new BodyDeflater(deflater, abandoned);
        boolean done = false;
        try {
            if (gzip) {
                body.writableChunk(GZIP_HEADER.length).writeBytes(GZIP_HEADER);
            }
            parts.forEach(body::add);
            body.finish();
            if (gzip) {
                body.writableChunk(2 * Integer.BYTES)
                        .writeIntLE((int) body.checksum.getValue())
                        .writeIntLE((int) body.size);
            }
            done = true;
            return body.pieces;
        } finally {
            deflater.end();
            if (!done) {
                body.pieces.forEach(ByteBuf::release);
            }
        }
    }

    private void add(ByteBuf part) {
        size += part.readableBytes();
        checksum.update(part.nioBuffer());
        deflater.setInput(part.nioBuffer());
        while (!deflater.needsInput()) {
            drain();
        }
    }

    private void finish() {
        deflater.finish();
        while (!deflater.finished()) {
            drain();
        }
    }

    private void drain() {
        if (abandoned.getAsBoolean()) {
            throw new CancellationException("the response was abandoned");
        }
        ByteBuf piece = writableChunk(1);
        ByteBuffer target = piece.nioBuffer(piece.writerIndex(), piece.writableBytes());
        piece.writerIndex(piece.writerIndex() + deflater.deflate(target));
    }

    /** Returns a piece with at least {@code length} writable bytes. */
    private ByteBuf writableChunk(int length) {
        if (pieces.isEmpty() || pieces.getLast().writableBytes() < length) {
            pieces.add(PooledByteBufAllocator.DEFAULT.directBuffer(PIECE_SIZE, PIECE_SIZE));
        }
        return pieces.getLast();
    }
}
