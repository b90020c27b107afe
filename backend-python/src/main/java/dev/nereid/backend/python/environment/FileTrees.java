package dev.nereid.backend.python.environment;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import org.jspecify.annotations.Nullable;

/** Removes directories of the cache. Static functions only. */
final class FileTrees {
    private FileTrees() {}

    /** Removes a file or a directory with all that is in it, and follows no links. What cannot be removed stays. */
    static void remove(Path root) {
        try {
            Files.walkFileTree(root, new Removal());
        } catch (IOException e) {
            // Another server removes it too, or the directory is read only: it is of no use to anybody.
        }
    }

    private static final class Removal extends SimpleFileVisitor<Path> {
        @Override
        public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes) {
            try {
                Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
            } catch (IOException | UnsupportedOperationException e) {
                return FileVisitResult.CONTINUE; // its files may be removed all the same
            }
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
            delete(file);
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult visitFileFailed(Path file, IOException failure) {
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException failure) {
            delete(directory);
            return FileVisitResult.CONTINUE;
        }

        private static void delete(Path path) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                return; // stays
            }
        }
    }
}
