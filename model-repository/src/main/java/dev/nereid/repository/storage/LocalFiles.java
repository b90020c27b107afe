package dev.nereid.repository.storage;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.time.Instant;

/** Operations that change the files of local copies. Safe for use by any thread. */
interface LocalFiles {
    /** Creates a directory, for its owner only, in an existing one. */
    void createDirectory(Path directory) throws IOException;

    /** Creates a file, which must not exist. Its close syncs the content to the disk. */
    OutputStream create(Path file) throws IOException;

    /** Creates a second name of a file; fails where the file system has none. */
    void link(Path existing, Path name) throws IOException;

    /** Sets the modification time of a file or directory. */
    void setModified(Path path, Instant modified) throws IOException;

    /** Syncs the names in a directory to the disk. */
    void syncDirectory(Path directory) throws IOException;

    /** Renames a directory in one step; the new name must not exist. */
    void move(Path source, Path target) throws IOException;

    /** Deletes a file or a directory with all that is in it, without following links. Does nothing if it is missing. */
    void delete(Path path) throws IOException;

    /** Returns the bytes that may be written to the disk of a directory. */
    long usableBytes(Path directory) throws IOException;
}
