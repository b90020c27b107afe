package dev.nereid.repository.config;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.TextFormat;
import com.google.protobuf.TextFormatParseInfoTree;
import dev.nereid.api.BestEffort;
import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;

/**
 * Reads model configurations in protobuf's text format. Without state; called on control threads, since it reads files.
 *
 * <p>Strict: a field that is unknown, duplicate or of the wrong type fails the whole file, and the error has its
 * position and the expected field or value.
 */
public final class ModelConfigReader {
    /** The maximum depth of messages. The messages of a configuration have less than ten levels. */
    static final int MAX_DEPTH = 100;

    private static final FieldDescriptor MAX_BATCH_SIZE =
            ModelConfig.getDescriptor().findFieldByNumber(ModelConfig.MAX_BATCH_SIZE_FIELD_NUMBER);

    /** The maximum size of a file. Configurations have some kilobytes. */
    public static final int MAX_BYTES = 16 << 20;

    /** A byte order mark, which editors on some systems write and the reference's parser skips. */
    private static final String BYTE_ORDER_MARK = "\uFEFF";

    private ModelConfigReader() {}

    /**
     * Reads the configuration file of a model that lies directly in its repository.
     *
     * @param file {@code <repository>/<model>/config.pbtxt}
     * @return the content of the file, nothing added
     * @throws InferenceException as {@link #read(Path, Path)}
     */
    public static ModelConfig read(Path file) {
        Path model = file.toAbsolutePath().getParent();
        Path repository = model == null ? null : model.getParent();
        return read(repository == null ? file.toAbsolutePath().getRoot() : repository, file);
    }

    /**
     * Reads a configuration file.
     *
     * @param repository the repository of the file; errors name the file relative to it
     * @return the content of the file, nothing added
     * @throws InferenceException as {@link #readWritten}
     */
    public static ModelConfig read(Path repository, Path file) {
        return readWritten(repository, file).config();
    }

    /**
     * Reads a configuration file, and the fields that its owner wrote.
     *
     * @param repository the repository of the file; errors name the file relative to it
     * @return the content of the file, nothing added
     * @throws InferenceException {@link ErrorCode#INTERNAL}, with line, column and the expected text if the text is no
     *     configuration
     */
    public static Written readWritten(Path repository, Path file) {
        String shown =
                repository.toAbsolutePath().relativize(file.toAbsolutePath()).toString();
        try {
            ConfigDiagnosis.Decoded decoded = ConfigDiagnosis.decode(bytes(file));
            decoded.problem().ifPresent(problem -> {
                throw failure(shown, problem.describe());
            });
            return parseWritten(shown, decoded.text());
        } catch (NoSuchFileException e) {
            throw new InferenceException(
                    ErrorCode.INTERNAL, "failed to open text file for read " + shown + ": No such file or directory");
        } catch (IOException e) {
            throw failure(shown, unreadable(e));
        }
    }

    /**
     * Reads a configuration file of limited size.
     *
     * @throws FileSystemException if the file is larger than {@link #MAX_BYTES}
     */
    static byte[] bytes(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            byte[] content = in.readNBytes(MAX_BYTES + 1);
            if (content.length > MAX_BYTES) {
                throw new FileSystemException(
                        file.toString(),
                        null,
                        "more than " + MAX_BYTES + " bytes (expected: at most " + MAX_BYTES + ")");
            }
            return content;
        }
    }

    /** Describes why a file cannot be read, without its path. */
    static String unreadable(IOException failure) {
        if (failure instanceof FileSystemException cause && cause.getReason() != null) {
            return "the file cannot be read: " + cause.getReason();
        }
        return "the file cannot be read: " + failure.getClass().getSimpleName();
    }

    /**
     * Reads a configuration from text.
     *
     * @param shown the name of the text in errors, for instance {@code simple/config.pbtxt}
     * @param text the configuration in protobuf's text format
     * @return the content of the text, nothing added
     * @throws InferenceException as {@link #parseWritten}
     */
    public static ModelConfig parse(String shown, String text) {
        return parseWritten(shown, text).config();
    }

    /**
     * Reads a configuration from text, and the fields that its owner wrote.
     *
     * @param shown the name of the text in errors, for instance {@code simple/config.pbtxt}
     * @param text the configuration in protobuf's text format
     * @return the content of the text, nothing added
     * @throws InferenceException {@link ErrorCode#INTERNAL} with line, column and the expected text if the text is no
     *     configuration
     */
    public static Written parseWritten(String shown, String text) {
        String plain = withoutMark(text);
        try {
            return parse(plain);
        } catch (TextFormat.ParseException e) {
            List<ConfigProblem> problems =
                    BestEffort.get("diagnosis of " + shown, List.of(), () -> ConfigDiagnosis.ofText(text));
            throw failure(
                    shown,
                    problems.isEmpty() ? new TextFormatError(e, plain).explain() : ConfigDiagnosis.describe(problems));
        }
    }

    /** Reads a configuration from text without a byte order mark. */
    static Written parse(String plain) throws TextFormat.ParseException {
        ModelConfig.Builder config = ModelConfig.newBuilder();
        TextFormatParseInfoTree.Builder places = TextFormatParseInfoTree.builder();
        TextFormat.Parser.newBuilder()
                .setSingularOverwritePolicy(TextFormat.Parser.SingularOverwritePolicy.FORBID_SINGULAR_OVERWRITES)
                .setRecursionLimit(MAX_DEPTH)
                .setParseInfoTreeBuilder(places)
                .build()
                .merge(plain, config);
        return new Written(
                config.build(), !places.build().getLocations(MAX_BATCH_SIZE).isEmpty());
    }

    /** Removes a byte order mark. */
    static String withoutMark(String text) {
        return text.startsWith(BYTE_ORDER_MARK) ? text.substring(1) : text;
    }

    private static InferenceException failure(String shown, String reason) {
        return new InferenceException(ErrorCode.INTERNAL, "failed to read text proto from " + shown + ": " + reason);
    }

    /**
     * A configuration as its owner wrote it. Immutable.
     *
     * @param config the content, nothing added
     * @param hasMaxBatchSize whether {@code max_batch_size} is written, also with the value 0, which the content has by
     *     default
     */
    public record Written(ModelConfig config, boolean hasMaxBatchSize) {
        /** The configuration of a model without a file. */
        public static final Written NONE = new Written(ModelConfig.getDefaultInstance(), false);
    }
}
