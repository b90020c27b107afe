package dev.nereid.repository.storage;

import dev.nereid.repository.ModelCopy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StoredObject;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Downloads the objects of one model into a partial copy. Confined to one thread.
 *
 * <p>Files that an earlier copy holds with the same size and ETag become second names of that copy's files. A file has
 * the modification time of its object, a directory the newest time in it, so that unchanged files keep their times.
 */
final class ModelDownload {
    private static final Logger LOG = LoggerFactory.getLogger(ModelDownload.class);

    /** How often an object is read, as connections break. */
    private static final int MAX_READS = 3;

    private final ModelStorage storage;
    private final LocalFiles files;
    private final StorageLimits limits;
    private final LongSupplier nanoTime;
    private final Path partial;

    ModelDownload(ModelStorage storage, LocalFiles files, StorageLimits limits, LongSupplier nanoTime, Path partial) {
        this.storage = storage;
        this.files = files;
        this.limits = limits;
        this.nanoTime = nanoTime;
        this.partial = partial;
    }

    /**
     * Downloads all files of a listing.
     *
     * @param earlier an earlier copy, leased by the caller
     * @return the manifest of the copy, not written yet
     */
    CopyManifest download(StorageListing.ModelListing listing, Optional<ModelCopy> earlier) throws IOException {
        ContentSink.Space space = new ContentSink.Space(files, partial, limits.freeBytes());
        space.check(listing.bytes());
        for (String directory : listing.directories()) {
            files.createDirectory(local(directory));
        }
        Path earlierCopy = earlier.map(copy -> copy.directory().root()).orElse(partial);
        Map<String, CopyManifest.Entry> known = new HashMap<>();
        CopyManifest.read(earlierCopy)
                .ifPresent(manifest -> manifest.files().forEach(file -> known.put(file.key(), file)));
        List<CopyManifest.Entry> entries = new ArrayList<>();
        for (StoredObject object : listing.files()) {
            CopyManifest.Entry entry = known.get(object.key());
            boolean linked = entry != null
                    && entry.etag().equals(object.etag())
                    && entry.size() == object.size()
                    && link(earlierCopy, object.key());
            entries.add(linked && entry != null ? entry : read(object, space));
        }
        setTimes(listing);
        return new CopyManifest(listing.model(), listing.fingerprint(), listing.directories(), entries);
    }

    /** Writes the manifest and syncs all names to the disk. Nothing may be added to the copy any more. */
    void complete(CopyManifest manifest) throws IOException {
        for (String directory : manifest.directories()) {
            files.syncDirectory(local(directory));
        }
        manifest.write(files, partial);
        files.syncDirectory(partial);
    }

    private boolean link(Path earlierCopy, String key) {
        try {
            files.link(earlierCopy.resolve(key), local(key));
            return true;
        } catch (IOException | UnsupportedOperationException e) {
            LOG.atDebug().addKeyValue("object", key).setCause(e).log("unchanged object is downloaded again ({})", key);
            return false;
        }
    }

    private CopyManifest.Entry read(StoredObject object, ContentSink.Space space) throws IOException {
        for (int reads = 1; ; reads++) {
            try {
                String sha256 = readOnce(object, space);
                files.setModified(local(object.key()), object.modified());
                return new CopyManifest.Entry(object.key(), object.size(), object.etag(), sha256);
            } catch (BackendException e) {
                if (reads == MAX_READS || e.code() != ErrorCode.UNAVAILABLE) {
                    throw new BackendException(e.code(), "object '" + object.key() + "': " + e.getMessage(), e);
                }
                LOG.atDebug()
                        .addKeyValue("object", object.key())
                        .setCause(e)
                        .log("object is read again ({})", object.key());
                files.delete(local(object.key()));
            }
        }
    }

    private String readOnce(StoredObject object, ContentSink.Space space) throws IOException {
        try (OutputStream file = files.create(local(object.key()))) {
            ContentSink sink = new ContentSink(file, space, object.size(), nanoTime, limits.nanos(object.size()));
            try {
                storage.read(object, sink);
            } catch (BackendException e) {
                if (sink.failure().isPresent()) {
                    throw failed(object, sink.failure().get());
                }
                throw e;
            }
            try {
                return sink.finish();
            } catch (IOException e) {
                throw failed(object, e);
            }
        }
    }

    private static IOException failed(StoredObject object, IOException e) {
        return e instanceof FileSystemException
                ? e
                : new IOException("object '" + object.key() + "': " + e.getMessage(), e);
    }

    /** Sets the times of the directories, of the innermost first. */
    private void setTimes(StorageListing.ModelListing listing) throws IOException {
        Map<String, Instant> newest = new HashMap<>();
        for (StoredObject object : listing.files()) {
            raise(
                    newest,
                    parent(object.key()),
                    Files.getLastModifiedTime(local(object.key())).toInstant());
        }
        for (String directory : listing.directories().reversed()) {
            Instant time = newest.getOrDefault(directory, Instant.EPOCH);
            files.setModified(local(directory), time);
            raise(newest, parent(directory), time);
        }
    }

    private static void raise(Map<String, Instant> newest, String directory, Instant time) {
        newest.merge(directory, time, (first, second) -> first.isAfter(second) ? first : second);
    }

    private static String parent(String key) {
        return key.substring(0, Math.max(0, key.lastIndexOf('/')));
    }

    /** Resolves a key that was checked. */
    private Path local(String key) {
        return partial.resolve(key);
    }

    /**
     * Writes one object to a file, and checks size, time and disk space meanwhile. Confined to one thread at a time.
     *
     * <p>The storage that writes may hide the reason of a failure; {@link #failure} keeps it.
     */
    private static final class ContentSink extends OutputStream {
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
                throw new IOException("too slow: " + written + " of " + size + " bytes in "
                        + limitNanos / 1_000_000_000L + " s (limit)");
            }
            if (unchecked >= SPACE_CHECK_BYTES) {
                space.check(size - written);
                unchecked = 0;
            }
        }
    }
}
