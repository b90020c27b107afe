package dev.nereid.repository.storage;

import dev.nereid.spi.storage.StoredObject;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * A digest of the keys, sizes and ETags of objects in any order. Confined to its thread.
 *
 * <p>It is the sum of the objects' digests, so that a listing of any length needs no memory for its objects.
 */
final class Fingerprint {
    private static final int DIGITS = 32;

    private final MessageDigest digest = sha256();
    private final long[] sum = new long[4];
    private long count;

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("SHA-256: missing (expected: part of every JDK)", e);
        }
    }

    /** Adds an object. Its modification time does not count. */
    void add(StoredObject object) {
        add(object.key());
        add(object.etag());
        digest.update(ByteBuffer.allocate(Long.BYTES).putLong(object.size()).flip());
        ByteBuffer bytes = ByteBuffer.wrap(digest.digest());
        for (int i = 0; i < sum.length; i++) {
            sum[i] += bytes.getLong();
        }
        count++;
    }

    /** Returns the fingerprint as 32 hexadecimal digits in lower case. */
    String text() {
        ByteBuffer bytes = ByteBuffer.allocate((sum.length + 1) * Long.BYTES).putLong(count);
        for (long part : sum) {
            bytes.putLong(part);
        }
        return HexFormat.of().formatHex(digest.digest(bytes.array())).substring(0, DIGITS);
    }

    private void add(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).flip());
        digest.update(bytes);
    }
}
