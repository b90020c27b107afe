package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.onnx.ort.ExternalFiles;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.TreeSet;

/**
 * The files that a session of a model is opened with. Immutable.
 *
 * <p>ONNX Runtime reads a model file, but maps the files with external data of its tensors. Those would end the process
 * when their owner truncates them, and change the loaded model when they are overwritten. So a model with external data is
 * opened from private copies of all of its files.
 *
 * @param mappedBytes the size of the private copies; 0 for a model without them
 * @param directory the text of the directory with the private copies, with a separator at its end; empty for a model
 *     without them
 * @param shown how errors show that directory
 */
record OnnxFiles(Path model, long mappedBytes, String directory, String shown) {
    /** The part of an error text that quotes a path. */
    private static final int MAX_QUOTED = 256;

    /** Finds the files of a model, and copies them where that is needed. */
    static OnnxFiles of(ModelContext context) {
        Path model = OnnxModelPath.of(context);
        try {
            ExternalFiles external = ExternalFiles.read(model);
            return external.isNone() ? new OnnxFiles(model, 0, "", "") : privately(context, model, external);
        } catch (IOException e) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "unable to load model '" + context.settings().name() + "', its file '" + model.getFileName()
                            + "' cannot be read: "
                            + (e.getClass().equals(IOException.class)
                                    ? e.getMessage()
                                    : e.getClass().getSimpleName()),
                    e);
        }
    }

    private static OnnxFiles privately(ModelContext context, Path model, ExternalFiles external) throws IOException {
        Path directory = model.toAbsolutePath().resolveSibling("");
        String name = String.valueOf(model.getFileName());
        NavigableSet<String> files = new TreeSet<>();
        files.add(name);
        for (String location : external.required()) {
            files.add(file(directory, location).orElseThrow(() -> missing(context, name, location)));
        }
        for (String location : external.mentioned()) {
            file(directory, location).ifPresent(files::add);
        }
        Path copies = context.privateFiles(directory, files);
        long bytes = 0;
        for (String file : files) {
            bytes += Files.size(copies.resolve(file));
        }
        Path within = context.modelDirectory().toAbsolutePath().normalize().relativize(directory.normalize());
        return new OnnxFiles(
                copies.resolve(name),
                bytes,
                copies + File.separator,
                context.settings().name() + "/" + within + "/");
    }

    /** Returns the path of an existing file below a directory, without names that mean the directory itself. */
    private static Optional<String> file(Path directory, String location) {
        try {
            Path path = Path.of(location);
            StringBuilder text = new StringBuilder();
            for (Path part : path) {
                String name = part.toString();
                if (name.equals("..")) {
                    return Optional.empty();
                }
                if (!name.isEmpty() && !name.equals(".")) {
                    text.append(text.isEmpty() ? "" : "/").append(name);
                }
            }
            return !path.isAbsolute() && !text.isEmpty() && Files.isRegularFile(directory.resolve(text.toString()))
                    ? Optional.of(text.toString())
                    : Optional.empty();
        } catch (InvalidPathException e) { // such as a NUL
            return Optional.empty();
        }
    }

    private static BackendException missing(ModelContext context, String name, String location) {
        String quoted = location.length() > MAX_QUOTED ? location.substring(0, MAX_QUOTED) + "…" : location;
        return ModelErrors.cannotLoad(
                context.settings().name(),
                "external data '" + quoted + "' of '" + name
                        + "' (expected: an existing file in the directory of that file, or below it)");
    }

    /** Returns a message of ONNX Runtime with the path of the model in place of that of a private copy. */
    String publicText(String message) {
        return directory.isEmpty() ? message : message.replace(directory, shown);
    }
}
