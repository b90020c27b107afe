package dev.nereid.backend.python.process;

import dev.nereid.backend.python.posix.SocketCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * A socket that listens in a directory that only its user may enter, for the start of one process. For one thread.
 *
 * <p>The process removes path and directory when it has connected, so that nothing is left even if the server is killed; this
 * removes them if it has not.
 */
final class SocketDirectory implements AutoCloseable {
    private static final String PREFIX = "nereid-python-";
    private static final FileAttribute<Set<PosixFilePermission>> OWNER_ONLY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

    private final Path directory;
    private final Path path;
    private final int socket;
    private boolean closed;

    private SocketDirectory(Path directory, Path path, int socket) {
        this.directory = directory;
        this.path = path;
        this.socket = socket;
    }

    /**
     * Creates the directory, in that for temporary files or else in another one.
     *
     * @param other a directory of the server
     * @throws IOException if neither can be written to, or their paths are too long
     */
    static SocketDirectory create(Path other) throws IOException {
        try {
            return listen(Files.createTempDirectory(PREFIX, OWNER_ONLY));
        } catch (IOException e) {
            try {
                return listen(Files.createTempDirectory(other, PREFIX, OWNER_ONLY));
            } catch (IOException second) {
                e.addSuppressed(second);
                throw e;
            }
        }
    }

    private static SocketDirectory listen(Path directory) throws IOException {
        Path path = directory.resolve("s");
        try {
            return new SocketDirectory(directory, path, SocketCalls.listen(path));
        } catch (IOException e) {
            Files.deleteIfExists(path);
            Files.deleteIfExists(directory);
            throw e;
        }
    }

    /** Returns the path on which the socket listens. */
    Path path() {
        return path;
    }

    /** Accepts a connection, or returns -1 if none comes in time. */
    int accept(int millis) throws IOException {
        return SocketCalls.accept(socket, millis);
    }

    @Override
    public void close() throws IOException {
        if (!closed) {
            closed = true;
            SocketCalls.close(socket);
            Files.deleteIfExists(path);
            Files.deleteIfExists(directory);
        }
    }
}
