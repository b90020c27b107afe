package dev.nereid.server.control;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.file.ContainedPath;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.files.PrivateDirectory;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes the files that clients send with loads, within limits. Safe for use by any thread; blocks. */
final class OverrideWriter {
    /** The maximum number of files of one load. */
    static final int MAX_FILES = 1000;

    /** The maximum size of the files of all loads together. */
    static final long MAX_BYTES = 16L << 30;

    private static final Logger LOG = LoggerFactory.getLogger(OverrideWriter.class);
    private static final int MAX_PATH = 1024;
    private static final int MAX_NAME_BYTES = 255;
    private static final int MAX_DEPTH = 32;

    private final PrivateDirectory directory;
    private final long maxBytes;
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong number = new AtomicLong();

    /**
     * Creates a writer.
     *
     * @param directory the directory for the files of all loads
     * @param maxBytes the maximum size of the files of all loads together
     */
    OverrideWriter(PrivateDirectory directory, long maxBytes) {
        this.directory = directory;
        this.maxBytes = maxBytes;
    }

    /**
     * Writes the files of a load.
     *
     * @param files the content of the files by their paths in the model's directory
     * @return the files, in use by the caller
     * @throws InferenceException a {@linkplain InferenceException#isClientError client error} if they are too many or too
     *     large, or a path is too long or leads out of the model's directory, or two exclude each other; {@link
     *     ErrorCode#INTERNAL} if they cannot be written. Nothing is left then
     */
    ModelSource.ModelFiles write(String key, Map<String, ByteBuffer> files) {
        String model = ModelKey.name(key);
        if (files.size() > MAX_FILES) {
            throw invalid(model, files.size() + " files (expected: at most " + MAX_FILES + ")");
        }
        files.keySet().forEach(path -> resolve(model, Path.of(""), path)); // before anything is written
        long size = files.values().stream().mapToLong(ByteBuffer::remaining).sum();
        if (bytes.addAndGet(size) > maxBytes) {
            bytes.addAndGet(-size);
            throw invalid(model, size + " bytes (expected: at most " + maxBytes + " for all loaded models)");
        }
        boolean written = false;
        Path root = null;
        try {
            root = directory.create().resolve(Long.toString(number.incrementAndGet()));
            ModelDirectory target = new ModelDirectory(root, model);
            writeAll(target, files);
            Path whole = root;
            written = true;
            return new ModelSource.ModelFiles(target.as(key), whole.toString(), () -> remove(whole, size));
        } catch (IOException e) {
            LOG.atError()
                    .addKeyValue("model", model)
                    .setCause(e)
                    .log("files of a load cannot be written (model '{}')", model);
            throw new InferenceException(
                    ErrorCode.INTERNAL, "failed to load '" + model + "', its files cannot be written: " + cause(e));
        } finally {
            if (!written && root != null) {
                remove(root, size);
            } else if (!written) {
                bytes.addAndGet(-size);
            }
        }
    }

    private void remove(Path root, long size) {
        PrivateDirectory.remove(root);
        bytes.addAndGet(-size);
    }

    private static void writeAll(ModelDirectory target, Map<String, ByteBuffer> files) throws IOException {
        Files.createDirectories(target.path());
        for (Map.Entry<String, ByteBuffer> file : new TreeMap<>(files).entrySet()) {
            Path path = resolve(target.name(), target.path(), file.getKey());
            try {
                Files.createDirectories(requireNonNull(path.getParent()));
                write(path, file.getValue().duplicate());
            } catch (FileAlreadyExistsException e) {
                throw invalid(
                        target.name(),
                        "'" + Quoted.text(file.getKey())
                                + "' is or lies below the path of another file (expected: paths of files that exclude no other)");
            }
        }
    }

    private static void write(Path path, ByteBuffer content) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            while (content.hasRemaining()) {
                channel.write(content);
            }
        }
    }

    /** Returns why files cannot be written, without their paths on this machine. */
    static String cause(IOException failure) {
        String text = failure instanceof FileSystemException file ? file.getReason() : failure.getMessage();
        return text != null && text.contains("No space left")
                ? "no space left for them"
                : failure.getClass().getSimpleName();
    }

    private static Path resolve(String model, Path directory, String path) {
        if (path.length() > MAX_PATH) {
            throw invalid(
                    model, "'" + Quoted.text(path) + "' (expected: a path of at most " + MAX_PATH + " characters)");
        }
        Path resolved;
        try {
            resolved = ContainedPath.resolve("file override", directory, path);
        } catch (InferenceException e) {
            throw refused(model, e.publicMessage());
        }
        if (Path.of(path).getNameCount() > MAX_DEPTH) {
            throw invalid(model, "'" + Quoted.text(path) + "' (expected: at most " + MAX_DEPTH + " names in a path)");
        }
        for (Path name : Path.of(path)) {
            if (name.toString().getBytes(StandardCharsets.UTF_8).length > MAX_NAME_BYTES) {
                throw invalid(
                        model, "'" + Quoted.text(path) + "' (expected: names of at most " + MAX_NAME_BYTES + " bytes)");
            }
        }
        return resolved;
    }

    private static InferenceException invalid(String model, String what) {
        return refused(model, "file override: " + what);
    }

    /** Returns a failure with the text and the code of the reference server, which cannot poll such a model. */
    private static InferenceException refused(String model, String reason) {
        return InferenceException.clientError(
                "failed to load '" + model + "', failed to poll from model repository: " + reason);
    }
}
