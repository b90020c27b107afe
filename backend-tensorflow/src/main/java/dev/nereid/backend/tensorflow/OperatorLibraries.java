package dev.nereid.backend.tensorflow;

import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.capi.TfLibrary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
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
        String copies = directory.toString();
        try {
            Path copy = context.privateFiles(directory, files(context, directory, name))
                    .resolve(name);
            copies = copy.resolveSibling("").toString();
            if (!tensorFlow.loadOperators(copy, library, digest(copy))) {
                context.logger()
                        .log(
                                System.Logger.Level.WARNING,
                                "op_library_filename '" + filename + "' was changed after it was loaded: its former"
                                        + " operations stay until the server is restarted");
            }
        } catch (TfException e) {
            throw TensorFlowErrors.cannotLoad(context, e, copies, directory.toString());
        } catch (IOException e) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "unable to load model '" + context.settings().name() + "', op_library_filename: '" + filename
                            + "' cannot be read",
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

    private static String digest(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file);
                DigestInputStream digest = new DigestInputStream(in, MessageDigest.getInstance("SHA-256"))) {
            digest.transferTo(OutputStream.nullOutputStream());
            return HexFormat.of().formatHex(digest.getMessageDigest().digest());
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every platform has it", e);
        }
    }
}
