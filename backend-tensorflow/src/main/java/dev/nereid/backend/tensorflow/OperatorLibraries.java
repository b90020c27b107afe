package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.ModelPaths;
import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.capi.TfLibrary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Loads libraries of custom operations from private copies: the process maps them until it ends. Stateless.
 *
 * <p>The libraries beside and below a library are copied with it, since it may need them there.
 */
final class OperatorLibraries {
    private static final Pattern NAME = Pattern.compile(".+\\.(so|so\\.[0-9.]+|dylib|dll)");

    /** How deep the directories of other libraries are: {@code $ORIGIN/lib} and {@code $ORIGIN/lib/x86_64}. */
    private static final int MAX_DEPTH = 3;

    private OperatorLibraries() {}

    /** Registers the operations of a library in the model's directory. */
    static void load(TfLibrary tensorFlow, ModelContext context, String filename) {
        Path library = ModelPaths.operatorLibrary(context, filename);
        Path directory = library.resolveSibling("");
        String name = String.valueOf(library.getFileName());
        try {
            SortedSet<String> files = files(context, directory, name);
            if (!tensorFlow.loadOperators(context.privateFiles(directory, files), files, name, library)) {
                context.logger()
                        .log(
                                System.Logger.Level.WARNING,
                                "op_library_filename '" + filename + "' was changed after it was loaded: its former"
                                        + " operations stay until the server is restarted");
            }
        } catch (TfException e) {
            throw TensorFlowErrors.cannotLoad(context, e);
        } catch (IOException | UncheckedIOException e) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "unable to load model '" + context.settings().name() + "', op_library_filename: '" + filename
                            + "' cannot be read, or not be copied to the cache directory of the plugin",
                    e);
        }
    }

    private static SortedSet<String> files(ModelContext context, Path directory, String library) throws IOException {
        SortedSet<String> files = new TreeSet<>(List.of(library));
        Path repository =
                context.modelDirectory().toAbsolutePath().resolveSibling("").toRealPath();
        try (Stream<Path> others = Files.walk(directory, MAX_DEPTH)) {
            for (Path other : others.toList()) {
                if (NAME.matcher(String.valueOf(other.getFileName())).matches()
                        && Files.isRegularFile(other)
                        && other.toRealPath().startsWith(repository)) {
                    files.add(String.valueOf(directory.relativize(other)).replace(File.separatorChar, '/'));
                }
            }
        }
        return files;
    }
}
