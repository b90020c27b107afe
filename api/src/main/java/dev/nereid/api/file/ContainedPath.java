package dev.nereid.api.file;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;

/**
 * Resolves paths from configurations and clients below a directory that they must not leave. Static functions only.
 *
 * <p>Refused are absolute paths, {@code ..}, and links that lead out of the directory; where a file is read, also
 * directories, devices and pipes, since the open of a pipe would wait for its writer.
 */
public final class ContainedPath {
    private static final int MAX_DIRECTORIES = 10_000;
    private static final String OUTSIDE =
            "%s: '%s' (expected: a path below its directory, without '..' and links that leave it)";

    private ContainedPath() {}

    /**
     * Resolves a path by its text alone. For files that are written.
     *
     * @param what what the path is for, for errors
     * @param directory the directory
     * @param path any text
     * @return the path below the directory
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it is not below the directory
     */
    public static Path resolve(String what, Path directory, String path) {
        Path relative;
        try {
            relative = Path.of(path);
        } catch (InvalidPathException e) { // such as a NUL
            throw outside(what, path);
        }
        if (path.isEmpty() || path.contains("\\") || relative.isAbsolute() || path.startsWith("/")) {
            throw outside(what, path);
        }
        for (Path name : relative) {
            String text = name.toString();
            if (text.isEmpty() || text.equals(".") || text.equals("..")) {
                throw outside(what, path);
            }
        }
        return directory.resolve(relative);
    }

    /**
     * Finds a file to read.
     *
     * @param what what the file is for, for errors
     * @param directory the directory
     * @param path any text
     * @return an existing regular file
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it is not below the directory, also by a link, or
     *     is a directory, device or pipe; {@link ErrorCode#NOT_FOUND} if there is no such file
     */
    public static Path file(String what, Path directory, String path) {
        Path file = existing(what, directory, resolve(what, directory, path), path);
        if (!Files.isRegularFile(file)) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT, what + ": '" + Quoted.text(path) + "' (expected: a regular file)");
        }
        return file;
    }

    /**
     * Refuses an existing entry of a directory that is a link out of it.
     *
     * @param what what the entry is for, for errors
     * @param directory the directory
     * @param entry a path below it
     * @param shown the name of the entry in errors
     * @return the entry, with all links resolved
     * @throws InferenceException as {@link #file}
     */
    public static Path existing(String what, Path directory, Path entry, String shown) {
        try {
            Path real = entry.toRealPath();
            if (!real.startsWith(directory.toRealPath())) {
                throw linkOut(what, shown);
            }
            return real;
        } catch (IOException e) {
            throw new InferenceException(
                    ErrorCode.NOT_FOUND, what + ": '" + Quoted.text(shown) + "' (expected: an existing file)");
        }
    }

    /**
     * Refuses a directory that has links out of another one, at any depth. Links that stay in it are followed.
     *
     * @param what what the directory is for, for errors
     * @param directory the directory that must not be left
     * @param tree the directory to be searched
     * @throws InferenceException as {@link #file}; {@link ErrorCode#INTERNAL} if a directory cannot be read
     */
    public static void tree(String what, Path directory, Path tree) {
        checkTree(what, directory, tree, existing(what, directory, tree, shown(directory, tree)), new HashSet<>());
    }

    private static void checkTree(String what, Path directory, Path shown, Path real, Set<Path> seen) {
        if (!seen.add(real)) {
            return; // a link to what contains it
        }
        if (seen.size() > MAX_DIRECTORIES) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    what + ": more than " + MAX_DIRECTORIES + " directories below '" + shown(directory, shown) + "'");
        }
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(real)) {
            for (Path entry : entries) {
                Path name = shown.resolve(entry.getFileName());
                Path target =
                        Files.isSymbolicLink(entry) ? existing(what, directory, entry, shown(directory, name)) : entry;
                if (Files.isDirectory(target)) {
                    checkTree(what, directory, name, target, seen);
                }
            }
        } catch (IOException e) {
            throw new InferenceException(
                    ErrorCode.INTERNAL,
                    what + ": '" + shown(directory, shown) + "' cannot be read: "
                            + e.getClass().getSimpleName());
        }
    }

    private static String shown(Path directory, Path path) {
        return directory.relativize(path).toString();
    }

    private static InferenceException linkOut(String what, String path) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                OUTSIDE.formatted(what, Quoted.text(path))
                        + ": copy what the link leads to, or mount it below the directory");
    }

    private static InferenceException outside(String what, String path) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, OUTSIDE.formatted(what, Quoted.text(path)));
    }
}
