package dev.nereid.repository.storage;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Objects;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Writes one object to a file, and checks size, time and disk space meanwhile. Confined to one thread at a time.
 *
 * <p>The storage that writes may hide the reason of a failure; {@link #failure} keeps it.
 */
final class ContentSink extends OutputStream {
    /** How many bytes may be written between two checks of the disk space. */
    private static final long SPACE_CHECK_BYTES = 64L << 20;

    private final OutputStream file;
    private final Space space;
    private final long size;
    private final LongSupplier nanoTime;
    private final long startNanos;
    private final long limitNanos;
    private final MessageDigest digest = Fingerprint.sha256();
    private long written;
    private long unchecked;
    private Optional<IOException> failure = Optional.empty();

    /**
     * The disk that is written to.
     *
     * @param directory a directory of the disk
     * @param freeBytes the bytes that have to remain free
     */
    record Space(LocalFiles files, Path directory, long freeBytes) {
        void check(long bytes) throws IOException {
            long usable = files.usableBytes(directory);
            if (usable - bytes < freeBytes) {
                throw new IOException("no space for " + bytes + " bytes on the disk of local copies: " + usable
                        + " are free (expected: " + freeBytes + " more than are needed)");
            }
        }
    }

    /**
     * Creates a sink.
     *
     * @param file the new file; not closed by this object
     * @param limitNanos how long the object may take
     */
    ContentSink(OutputStream file, Space space, long size, LongSupplier nanoTime, long limitNanos) {
        this.file = file;
        this.space = space;
        this.size = size;
        this.nanoTime = nanoTime;
        this.limitNanos = limitNanos;
        startNanos = nanoTime.getAsLong();
    }

    /** Returns why a write failed; empty if none did. */
    Optional<IOException> failure() {
        return failure;
    }

    /** Checks that the object was written as a whole, and returns the SHA-256 of its content in hexadecimal digits. */
    String finish() throws IOException {
        if (failure.isPresent()) {
            throw failure.get();
        }
        if (written != size) {
            throw new IOException("ended after " + written + " bytes (expected: " + size + ")");
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    @Override
    public void write(int value) throws IOException {
        write(new byte[] {(byte) value}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        try {
            if (failure.isPresent()) {
                throw failure.get();
            }
            check(length);
            file.write(bytes, offset, length);
        } catch (IOException e) {
            failure = Optional.of(e);
            throw e;
        }
        digest.update(bytes, offset, length);
        written += length;
        unchecked += length;
    }

    private void check(int length) throws IOException {
        if (length > size - written) {
            throw new IOException("more than " + size + " bytes (expected: the size of the listing)");
        }
        if (nanoTime.getAsLong() - startNanos > limitNanos) {
            throw new IOException(
                    "too slow: " + written + " of " + size + " bytes in " + limitNanos / 1_000_000_000L + " s (limit)");
        }
        if (unchecked >= SPACE_CHECK_BYTES) {
            space.check(size - written);
            unchecked = 0;
        }
    }
}
