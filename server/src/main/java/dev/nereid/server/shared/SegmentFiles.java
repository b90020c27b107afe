package dev.nereid.server.shared;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.regex.Pattern;

/**
 * Opens shared memory segments by key, as {@code shm_open} does: files in one directory. Immutable.
 *
 * @param directory the directory in which the system keeps segments
 */
record SegmentFiles(Path directory) {
    /** The directory of the operating system. */
    static final SegmentFiles OF_THE_SYSTEM = new SegmentFiles(Path.of("/dev/shm"));

    /** The prefix of segments that the reference's backends share among themselves; not for clients. */
    static final String RESERVED = "triton_python_backend_shm_region_";

    private static final Pattern LEADING_SLASHES = Pattern.compile("^/+");

    static boolean isEmpty(String key) {
        return name(key).isEmpty();
    }

    static boolean isReserved(String key) {
        return name(key).startsWith(RESERVED);
    }

    /**
     * Opens a segment for reading and writing. A key or a link cannot lead out of the directory.
     *
     * @throws IOException if there is no such segment, or if it is not a regular file
     */
    FileChannel open(String key) throws IOException {
        String name = name(key);
        if (name.isEmpty() || name.equals(".") || name.equals("..") || name.indexOf('/') >= 0 || name.indexOf(0) >= 0) {
            throw new FileSystemException(name, null, "no name of a segment");
        }
        Path file = directory.resolve(name);
        // A link, a pipe or a directory must not even be opened; an opened file cannot be a link even if it is replaced
        // meanwhile.
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
            throw new FileSystemException(name, null, "no segment");
        }
        return FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
    }

    private static String name(String key) {
        return LEADING_SLASHES.matcher(key).replaceFirst("");
    }
}
