package dev.nereid.distribution.report;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.TextFormat;
import com.google.protobuf.util.JsonFormat;
import dev.nereid.api.InferenceException;
import dev.nereid.repository.config.ModelConfigJson;
import dev.nereid.repository.config.ModelConfigReader;
import inference.ModelConfig;
import io.vertx.core.json.DecodeException;
import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** Converts model configurations between JSON and protobuf's text format. Static functions only. */
public final class ConfigText {
    /** The largest batch of a configuration without one, as JSON has it. */
    private static final String UNWRITTEN_BATCH_SIZE = "\"max_batch_size\":0,";

    private ConfigText() {}

    /** Returns JSON with a line for each field; empty if the text is no JSON object. */
    public static Optional<String> pretty(String json) {
        try {
            return Optional.of(new JsonObject(json).encodePrettily() + "\n");
        } catch (DecodeException e) {
            return Optional.empty();
        }
    }

    /** Converts JSON to protobuf's text format; empty if the JSON is no configuration. */
    public static Optional<String> textFormat(String json) {
        try {
            ModelConfig.Builder config = ModelConfig.newBuilder();
            JsonFormat.parser().ignoringUnknownFields().merge(json, config);
            String text = TextFormat.printer().printToString(config);
            // The text format leaves a 0 out, but without one the configuration may be completed to batch.
            return Optional.of(config.getMaxBatchSize() == 0 ? text + "max_batch_size: 0\n" : text);
        } catch (InvalidProtocolBufferException e) {
            return Optional.empty();
        }
    }

    /**
     * Reads a configuration in JSON or protobuf's text format as JSON.
     *
     * @throws IOException if the file cannot be read
     * @throws InferenceException if it is neither
     */
    public static String json(Path file) throws IOException {
        String text;
        try (InputStream in = Files.newInputStream(file)) {
            byte[] content = in.readNBytes(ModelConfigReader.MAX_BYTES + 1);
            if (content.length > ModelConfigReader.MAX_BYTES) {
                throw new IOException(
                        "more than " + ModelConfigReader.MAX_BYTES + " bytes (expected: a configuration)");
            }
            text = new String(content, StandardCharsets.UTF_8);
        }
        if (text.stripLeading().startsWith("{")) {
            return text;
        }
        ModelConfigReader.Written written = ModelConfigReader.parseWritten(file.toString(), text);
        String json = ModelConfigJson.write(written.config());
        // JSON has all defaults, but a 0 there would be one that the owner wrote.
        return written.hasMaxBatchSize() ? json : json.replace(UNWRITTEN_BATCH_SIZE, "");
    }
}
