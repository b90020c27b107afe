package dev.nereid.repository.storage;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

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

    /** The files of local copies on a disk. Immutable; safe for use by any thread. */
    static final class Disk implements LocalFiles {
        @Override
        public void createDirectory(Path directory) throws IOException {
            Files.createDirectory(directory, ownerOnly(directory));
        }

        @Override
        public OutputStream create(Path file) throws IOException {
            FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
            return new FilterOutputStream(Channels.newOutputStream(channel)) {
                @Override
                public void write(byte[] bytes, int offset, int length) throws IOException {
                    out.write(bytes, offset, length);
                }

                @Override
                public void close() throws IOException {
                    try (channel) {
                        if (channel.isOpen()) {
                            channel.force(true);
                        }
                    }
                }
            };
        }

        @Override
        public void link(Path existing, Path name) throws IOException {
            Files.createLink(name, existing);
        }

        @Override
        public void setModified(Path path, Instant modified) throws IOException {
            Files.setLastModifiedTime(path, FileTime.from(modified));
        }

        @Override
        public void syncDirectory(Path directory) throws IOException {
            try (FileChannel channel = FileChannel.open(directory)) {
                channel.force(true);
            }
        }

        @Override
        public void move(Path source, Path target) throws IOException {
            Files.move(source, target, StandardCopyOption.ATOMIC_MOVE);
        }

        @Override
        public void delete(Path path) throws IOException {
            if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
                return;
            }
            Files.walkFileTree(path, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                    Files.delete(file);
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException failure)
                        throws IOException {
                    if (failure != null) {
                        throw failure;
                    }
                    Files.delete(directory);
                    return FileVisitResult.CONTINUE;
                }
            });
        }

        @Override
        public long usableBytes(Path directory) throws IOException {
            return Files.getFileStore(directory).getUsableSpace();
        }

        private static FileAttribute<?>[] ownerOnly(Path directory) {
            return directory.getFileSystem().supportedFileAttributeViews().contains("posix")
                    ? new FileAttribute<?>[] {
                        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
                    }
                    : new FileAttribute<?>[0];
        }
    }
}
