package dev.nereid.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ContainedPath;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/**
 * Resolves the paths of warm-up and state files within their directory of the model. Static functions only.
 *
 * <p>Unlike {@link ContainedPath}, a leading slash is ignored, as the reference does.
 */
public final class DataFilePath {
    private DataFilePath() {}

    /**
     * Resolves a path by its text alone, so that its error does not depend on files elsewhere.
     *
     * @throws InferenceException {@link ErrorCode#UNSUPPORTED} if it leads elsewhere
     */
    public static Path resolve(Path directory, String name) {
        Path path;
        try {
            path = directory.resolve(name.replaceFirst("^/+", ""));
        } catch (InvalidPathException e) { // such as a NUL
            throw outside(directory, name);
        }
        if (!path.normalize().startsWith(directory.normalize())) {
            throw outside(directory, name);
        }
        return path;
    }

    /**
     * Refuses a path with links that lead elsewhere.
     *
     * @param path a resolved path
     * @return the path with all links followed
     * @throws IOException if there is no such file
     * @throws InferenceException {@link ErrorCode#UNSUPPORTED} if it lies elsewhere
     */
    public static Path checkReal(Path directory, Path path, String name) throws IOException {
        Path file = path.toRealPath();
        if (!file.startsWith(directory.toRealPath())) {
            throw outside(directory, name);
        }
        return file;
    }

    private static InferenceException outside(Path directory, String name) {
        return new InferenceException(
                ErrorCode.UNSUPPORTED,
                "file path '" + name + "' is outside of the model's " + directory.getFileName() + " directory");
    }
}
