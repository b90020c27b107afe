package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.ModelPaths;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableSet;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Libraries of custom operators, as private copies: the process maps them for as long as a session lives. Stateless.
 *
 * <p>The libraries beside and below a library are copied with it, since it may need them there.
 */
final class OperatorLibraries {
    private static final Pattern NAME = Pattern.compile(".+\\.(so|so\\.[0-9.]+|dylib|dll)");

    /** How deep the directories of other libraries are: {@code $ORIGIN/lib} and {@code $ORIGIN/lib/x86_64}. */
    private static final int MAX_DEPTH = 3;

    private OperatorLibraries() {}

    /** Returns the copies of the libraries that a configuration names. */
    static List<Path> of(ModelContext context) {
        List<Path> libraries = new ArrayList<>();
        for (String filename : context.settings().values("model_operations.op_library_filename")) {
            Path library = ModelPaths.operatorLibrary(context, filename);
            String name = String.valueOf(library.getFileName());
            Path directory = library.resolveSibling("");
            NavigableSet<String> files = new TreeSet<>(List.of(name));
            try (Stream<Path> others = Files.walk(directory, MAX_DEPTH)) {
                Path repository = context.modelDirectory()
                        .toAbsolutePath()
                        .resolveSibling("")
                        .toRealPath();
                for (Path other : others.toList()) {
                    if (NAME.matcher(String.valueOf(other.getFileName())).matches()
                            && Files.isRegularFile(other)
                            && other.toRealPath().startsWith(repository)) {
                        files.add(String.valueOf(directory.relativize(other)).replace(File.separatorChar, '/'));
                    }
                }
            } catch (IOException | UncheckedIOException e) {
                throw new BackendException(
                        ErrorCode.UNAVAILABLE,
                        "unable to load model '" + context.settings().name()
                                + "', the directory of op_library_filename '" + filename + "' cannot be read",
                        e);
            }
            libraries.add(context.privateFiles(directory, files).resolve(name));
        }
        return libraries;
    }

    /** Returns the size of libraries for statistics. An unreadable library counts as 0 bytes. */
    static long byteSize(List<Path> libraries) {
        return libraries.stream().mapToLong(path -> path.toFile().length()).sum();
    }
}
