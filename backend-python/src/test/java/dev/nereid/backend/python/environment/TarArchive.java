package dev.nereid.backend.python.environment;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;

/** Builds tar archives byte by byte, wrong ones too. Confined to one thread. */
final class TarArchive {
    static final long MODIFIED = 1_000_000_000;

    private static final int BLOCK = 512;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    TarArchive file(String name, String content) {
        return file(name, content, 0644);
    }

    TarArchive file(String name, String content, int mode) {
        byte[] data = content.getBytes(UTF_8);
        return header(name, '0', data.length, mode, "").data(data);
    }

    TarArchive directory(String name, int mode) {
        return header(name, '5', 0, mode, "");
    }

    TarArchive symbolicLink(String name, String target) {
        return header(name, '2', 0, 0777, target);
    }

    TarArchive hardLink(String name, String target) {
        return header(name, '1', 0, 0644, target);
    }

    /** Adds a header of pax with records. */
    TarArchive pax(char type, String... records) {
        StringBuilder all = new StringBuilder();
        for (String record : records) {
            int length = record.getBytes(UTF_8).length + 2;
            int total = length + Integer.toString(length).length();
            total = length + Integer.toString(total).length();
            all.append(total).append(' ').append(record).append('\n');
        }
        byte[] data = all.toString().getBytes(UTF_8);
        return header("pax", type, data.length, 0644, "").data(data);
    }

    TarArchive header(String name, char type, long size, int mode, String link) {
        byte[] header = new byte[BLOCK];
        put(header, 0, 100, name);
        put(header, 100, 8, "%07o".formatted(mode));
        put(header, 108, 8, "0001750");
        put(header, 116, 8, "0001750");
        put(header, 124, 12, "%011o".formatted(size));
        put(header, 136, 12, "%011o".formatted(MODIFIED));
        header[156] = (byte) type;
        put(header, 157, 100, link);
        put(header, 257, 8, "ustar\00000");
        return raw(checked(header));
    }

    static byte[] checked(byte[] header) {
        put(header, 148, 8, "        ");
        int sum = 0;
        for (byte b : header) {
            sum += Byte.toUnsignedInt(b);
        }
        put(header, 148, 8, "%06o\0 ".formatted(sum));
        return header;
    }

    TarArchive data(byte[] data) {
        return raw(data).raw(new byte[-data.length & BLOCK - 1]);
    }

    TarArchive raw(byte[] data) {
        bytes.writeBytes(data);
        return this;
    }

    byte[] tar() {
        byte[] entries = bytes.toByteArray();
        byte[] all = java.util.Arrays.copyOf(entries, entries.length + 2 * BLOCK);
        return all;
    }

    byte[] unfinished() {
        return bytes.toByteArray();
    }

    Path gzip(Path file) {
        try (GZIPOutputStream out = new GZIPOutputStream(Files.newOutputStream(file))) {
            out.write(tar());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return file;
    }

    private static void put(byte[] header, int offset, int length, String text) {
        byte[] data = text.getBytes(UTF_8);
        System.arraycopy(data, 0, header, offset, Math.min(length, data.length));
    }
}
