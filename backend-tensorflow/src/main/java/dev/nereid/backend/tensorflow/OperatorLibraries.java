package dev.nereid.backend.tensorflow;

import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.capi.TfLibrary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
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
 * <p>With a library the others of its directory are copied, since it may need them there.
 */
final class OperatorLibraries {
    private static final Pattern NAME = Pattern.compile(".+\\.(so|so\\.[0-9.]+|dylib|dll)");

    private OperatorLibraries() {}

    /** Registers the operations of a library in the model's directory. */
    static void load(TfLibrary tensorFlow, ModelContext context, String filename) throws BackendException {
        Path library = TensorFlowModelPath.operatorLibrary(context, filename);
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
        } catch (IOException e) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "unable to load model '" + context.settings().name() + "', op_library_filename: '" + filename
                            + "' cannot be read, or not be copied to the cache directory of the plugin",
                    e);
        }
    }

    private static SortedSet<String> files(ModelContext context, Path directory, String library) throws IOException {
        SortedSet<String> files = new TreeSet<>(List.of(library));
        Path root = context.modelDirectory().toRealPath();
        try (Stream<Path> others = Files.list(directory)) {
            for (Path other : others.toList()) {
                String name = String.valueOf(other.getFileName());
                if (NAME.matcher(name).matches()
                        && Files.isRegularFile(other)
                        && other.toRealPath().startsWith(root)) {
                    files.add(name);
                }
            }
        }
        return files;
    }
}
