package dev.nereid.backend.python.environment;

import java.io.IOException;
import java.io.InputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.function.LongConsumer;

/** Digests that name directories of the cache. Static functions only. */
final class Digests {
    private static final int BUFFER = 1 << 16;

    /** Bytes of SHA-256 that names have. */
    private static final int LENGTH = 16;

    private Digests() {}

    static MessageDigest start() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("SHA-256 is part of every JDK", e);
        }
    }

    /** Returns the text of a digest, and resets it. */
    static String end(MessageDigest digest) {
        return HexFormat.of().formatHex(digest.digest(), 0, LENGTH);
    }

    static String of(byte[] bytes) {
        MessageDigest digest = start();
        digest.update(bytes);
        return end(digest);
    }

    /** Returns the digest of all that is left of a stream. After each part, {@code progress} gets the bytes so far. */
    static String of(InputStream in, LongConsumer progress) throws IOException {
        MessageDigest digest = start();
        byte[] buffer = new byte[BUFFER];
        long total = 0;
        for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
            digest.update(buffer, 0, count);
            total += count;
            progress.accept(total);
        }
        return end(digest);
    }
}
