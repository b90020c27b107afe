package dev.nereid.backend.python.environment;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Reads a tar archive: ustar, with headers of pax and long names of GNU. Confined to one thread.
 *
 * <p>Nothing in the archive is trusted: headers have checksums, sizes are not negative, and of extended headers no more
 * is read than {@link #MAX_EXTENSION}. Memory does not depend on the sizes that it claims.
 */
final class TarReader {
    /** The most bytes of an extended header. */
    static final int MAX_EXTENSION = 1 << 20;

    private static final int BLOCK = 512;
    private static final int NAME = 0;
    private static final int NAME_SIZE = 100;
    private static final int MODE = 100;
    private static final int SHORT_NUMBER = 8;
    private static final int SIZE = 124;
    private static final int MODIFIED = 136;
    private static final int LONG_NUMBER = 12;
    private static final int CHECKSUM = 148;
    private static final int TYPE = 156;
    private static final int LINK = 157;
    private static final int MAGIC = 257;
    private static final int PREFIX = 345;
    private static final int PREFIX_SIZE = 155;
    private static final byte[] POSIX = {'u', 's', 't', 'a', 'r', 0};
    private static final int OCTAL = 3;
    private static final int BASE_256 = 0x80;
    private static final int PERMISSIONS = 0777;
    private static final int DECIMAL = 10;
    private static final int MAX_DIGITS = 9;

    private final InputStream in;
    private final byte[] header = new byte[BLOCK];
    private final Map<String, String> defaults = new HashMap<>();

    /** Bytes of the entry that were not read, and the padding behind them. */
    private long remaining;

    private int padding;
    private String name = "";

    /** Creates a reader of an archive without compression, which the caller owns. */
    TarReader(InputStream in) {
        this.in = in;
    }

    /**
     * Skips the rest of an entry, and reads the next one; empty at the end of the archive.
     *
     * @throws ArchiveException if the archive is damaged
     * @throws IOException if it cannot be read
     */
    Optional<TarEntry> next() throws IOException {
        Map<String, String> extended = new HashMap<>();
        while (readHeader()) {
            long size = number("size", SIZE, LONG_NUMBER);
            char type = (char) header[TYPE];
            switch (type) {
                case 'x', 'X' -> records(extension(size), extended);
                case 'g' -> records(extension(size), defaults);
                case 'L' -> extended.put("path", untilZero(extension(size)));
                case 'K' -> extended.put("linkpath", untilZero(extension(size)));
                case 'V' -> startContent(size); // the name of the volume
                default -> {
                    return Optional.of(entry(type, size, extended));
                }
            }
        }
        return Optional.empty();
    }

    /**
     * Reads bytes of the file that {@link #next} has returned. Returns their number, 0 at the end of the file.
     *
     * @throws ArchiveException if the archive ends before
     */
    int read(byte[] buffer) throws IOException {
        if (remaining == 0) {
            return 0;
        }
        int count = in.read(buffer, 0, (int) Math.min(buffer.length, remaining));
        if (count < 0) {
            throw new ArchiveException("the archive ends in the middle of '" + name + "'");
        }
        remaining -= count;
        return count;
    }

    private TarEntry entry(char type, long size, Map<String, String> extended) throws IOException {
        Map<String, String> fields = new HashMap<>(defaults);
        fields.putAll(extended);
        String path = fields.getOrDefault("path", name());
        TarEntry.Kind kind = fields.keySet().stream().anyMatch(key -> key.startsWith("GNU.sparse."))
                ? TarEntry.Kind.OTHER
                : kind(type, path);
        long content = 0;
        if (kind == TarEntry.Kind.FILE || kind == TarEntry.Kind.OTHER) {
            content = fields.containsKey("size") ? decimal("size", fields.get("size")) : size;
        }
        long modified = fields.containsKey("mtime")
                ? decimal("mtime", fields.get("mtime"))
                : number("mtime", MODIFIED, LONG_NUMBER);
        startContent(content);
        name = path;
        return new TarEntry(
                path,
                kind,
                content,
                (int) (number("mode", MODE, SHORT_NUMBER) & PERMISSIONS),
                modified,
                kind == TarEntry.Kind.SYMBOLIC_LINK || kind == TarEntry.Kind.HARD_LINK
                        ? fields.getOrDefault("linkpath", text(LINK, NAME_SIZE))
                        : "");
    }

    private static TarEntry.Kind kind(char type, String path) {
        return switch (type) {
            case '0', '\0', '7' -> path.endsWith("/") ? TarEntry.Kind.DIRECTORY : TarEntry.Kind.FILE;
            case '1' -> TarEntry.Kind.HARD_LINK;
            case '2' -> TarEntry.Kind.SYMBOLIC_LINK;
            case '5' -> TarEntry.Kind.DIRECTORY;
            default -> TarEntry.Kind.OTHER;
        };
    }

    private void startContent(long size) throws ArchiveException {
        if (size < 0) {
            throw new ArchiveException("size of '" + name() + "': " + size + " (expected: 0 or more)");
        }
        remaining = size;
        padding = (int) (-size & (BLOCK - 1));
    }

    /** Reads the next header into {@link #header}; false at the end of the archive. */
    private boolean readHeader() throws IOException {
        skip(remaining);
        skip(padding);
        remaining = 0;
        padding = 0;
        int count = in.readNBytes(header, 0, BLOCK);
        if (count == 0 || isZero()) {
            return false;
        }
        if (count < BLOCK) {
            throw new ArchiveException("the archive ends in the middle of a header");
        }
        long expected = number("checksum", CHECKSUM, SHORT_NUMBER);
        long sum = 0;
        for (int i = 0; i < BLOCK; i++) {
            boolean isChecksum = i >= CHECKSUM && i < CHECKSUM + SHORT_NUMBER;
            sum += isChecksum ? ' ' : Byte.toUnsignedInt(header[i]);
        }
        if (sum != expected) {
            throw new ArchiveException("no tar archive, or a damaged one: a header has the checksum " + sum
                    + " (expected: " + expected + ")");
        }
        return true;
    }

    private boolean isZero() {
        for (byte b : header) {
            if (b != 0) {
                return false;
            }
        }
        return true;
    }

    private void skip(long count) throws IOException {
        try {
            in.skipNBytes(count);
        } catch (EOFException e) {
            throw new ArchiveException("the archive ends in the middle of '" + name + "'");
        }
    }

    private byte[] extension(long size) throws IOException {
        if (size < 0 || size > MAX_EXTENSION) {
            throw new ArchiveException("extended header: " + size + " bytes (expected: at most " + MAX_EXTENSION + ")");
        }
        startContent(size);
        byte[] content = in.readNBytes((int) size);
        if (content.length < size) {
            throw new ArchiveException("the archive ends in the middle of an extended header");
        }
        remaining = 0;
        return content;
    }

    /** Reads records such as {@code 18 path=directory\n}, of which the number is their length. */
    private static void records(byte[] content, Map<String, String> into) throws ArchiveException {
        int at = 0;
        while (at < content.length && content[at] != 0) {
            int space = at;
            int length = 0;
            while (space < content.length
                    && content[space] >= '0'
                    && content[space] <= '9'
                    && space - at < MAX_DIGITS) {
                length = length * DECIMAL + content[space++] - '0';
            }
            int end = at + length;
            boolean fits =
                    space > at && space < content.length && content[space] == ' ' && length <= content.length - at;
            if (!fits || end - 1 <= space || content[end - 1] != '\n') {
                throw new ArchiveException("extended header: a record without its length");
            }
            String record = new String(content, space + 1, end - space - 2, UTF_8);
            int equals = record.indexOf('=');
            if (equals < 0) {
                throw new ArchiveException("extended header: a record without '='");
            }
            if (isKnown(record.substring(0, equals))) {
                into.put(record.substring(0, equals), record.substring(equals + 1));
            }
            at = end;
        }
    }

    private static boolean isKnown(String key) {
        return switch (key) {
            case "path", "linkpath", "size", "mtime", "GNU.sparse.major", "GNU.sparse.size", "GNU.sparse.map" -> true;
            default -> false;
        };
    }

    private String name() {
        String last = text(NAME, NAME_SIZE);
        for (int i = 0; i < POSIX.length; i++) {
            if (header[MAGIC + i] != POSIX[i]) {
                return last;
            }
        }
        String first = text(PREFIX, PREFIX_SIZE);
        return first.isEmpty() ? last : first + "/" + last;
    }

    private String text(int offset, int length) {
        int end = offset;
        while (end < offset + length && header[end] != 0) {
            end++;
        }
        return new String(header, offset, end - offset, UTF_8);
    }

    private static String untilZero(byte[] content) {
        int end = 0;
        while (end < content.length && content[end] != 0) {
            end++;
        }
        return new String(content, 0, end, UTF_8);
    }

    /** Reads octal digits, or a number of GNU to the base 256. */
    private long number(String field, int offset, int length) throws ArchiveException {
        if ((header[offset] & BASE_256) != 0) {
            long value = header[offset] == (byte) 0xff ? -1 : header[offset] & (BASE_256 - 1);
            for (int i = 1; i < length; i++) {
                if (value > Long.MAX_VALUE >> Byte.SIZE || value < Long.MIN_VALUE >> Byte.SIZE) {
                    throw new ArchiveException(field + " of '" + name() + "': more than 64 bits");
                }
                value = value << Byte.SIZE | Byte.toUnsignedInt(header[offset + i]);
            }
            return value;
        }
        long value = 0;
        boolean hasEnded = false;
        for (int i = offset; i < offset + length; i++) {
            byte b = header[i];
            if (b >= '0' && b <= '7' && !hasEnded) {
                value = value << OCTAL | b - '0';
            } else if (b == 0 || b == ' ') {
                hasEnded |= value != 0;
            } else {
                throw new ArchiveException(
                        "no tar archive, or a damaged one: the " + field + " of a header is no number");
            }
        }
        return value;
    }

    private static long decimal(String field, String text) throws ArchiveException {
        int point = text.indexOf('.');
        try {
            return Long.parseLong(point < 0 ? text : text.substring(0, point));
        } catch (NumberFormatException e) {
            throw new ArchiveException("extended header: " + field + " is no number");
        }
    }
}
