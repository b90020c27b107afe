package dev.nereid.plugin.jar;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Computes a digest of a plugin's jars, which names its cache directory. Static functions only.
 *
 * <p>Digests the entries in the jars' central directories (name, size, CRC-32) instead of reading the entries: some
 * plugins contain hundreds of megabytes of native libraries, and an attacker that could forge a checksum could as well
 * write the plugin itself.
 */
public final class PluginDigest {
    private static final int DIGITS = 32;

    private PluginDigest() {}

    /**
     * Returns a name of hexadecimal digits that differs for jars of different content.
     *
     * @param jars the jars; their order counts
     * @throws IOException if a jar cannot be read or is none
     */
    public static String hash(List<Path> jars) throws IOException {
        MessageDigest digest = sha256();
        for (Path jar : jars) {
            try (ZipFile zip = new ZipFile(jar.toFile())) {
                add(digest, jar.getFileName().toString());
                zip.stream().map(PluginDigest::describe).sorted().forEach(entry -> add(digest, entry));
            }
        }
        return digits(digest);
    }

    /** Returns a name of hexadecimal digits that differs for different texts. */
    public static String hash(String text) {
        MessageDigest digest = sha256();
        add(digest, text);
        return digits(digest);
    }

    private static String digits(MessageDigest digest) {
        return HexFormat.of().formatHex(digest.digest()).substring(0, DIGITS);
    }

    private static String describe(ZipEntry entry) {
        return entry.getName() + '\t' + entry.getSize() + '\t' + entry.getCrc();
    }

    private static void add(MessageDigest digest, String line) {
        digest.update(line.getBytes(StandardCharsets.UTF_8));
        digest.update((byte) '\n');
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
