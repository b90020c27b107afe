package dev.nereid.distribution;

import dev.nereid.api.InferenceException;
import dev.nereid.distribution.client.LoadRequest;
import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.FlagValue;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.UsageException;
import dev.nereid.distribution.report.ConfigText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** Loads a model of a running server. Confined to the thread of its command. */
final class LoadAction implements ModelChange.Action {
    private static final FlagValue<Map.Entry<String, Path>> REPLACEMENT = new FlagValue<>(
            "PATH=FILE", "a path in the model's directory, =, and the name of a file", LoadAction::replacement);

    private final Map<String, Path> files = new TreeMap<>();
    private boolean isForced;
    private Optional<String> config = Optional.empty();

    @Override
    public void declare(Flags flags) {
        flags.add("--config", FlagValue.text("FILE|JSON"), v -> config = Optional.of(v))
                .help("A configuration in place of the model's own: JSON, or a file of JSON or of protobuf's text"
                        + " format.")
                .withoutVariable();
        flags.add("--file", REPLACEMENT, v -> files.put(v.getKey(), v.getValue()))
                .help("A file in place of one in the model's directory, as in 1/model.onnx=new.onnx. Needs --config."
                        + " May be given several times.")
                .withoutVariable();
        flags.toggle("--force", () -> isForced = true)
                .help("Loads all versions anew, also if nothing of the model has changed; cached responses of before"
                        + " are not used again. Known to Nereid servers only.");
    }

    @Override
    public void run(ServerClient server, String model) throws UsageException, RequestException, InterruptedException {
        server.load(model, new LoadRequest(readConfig(), checkedFiles(), isForced));
    }

    private Optional<String> readConfig() throws UsageException {
        if (config.isEmpty() || config.get().stripLeading().startsWith("{")) {
            return config;
        }
        try {
            return Optional.of(ConfigText.json(file("--config", config.get())));
        } catch (InferenceException e) {
            throw new UsageException("--config: " + e.publicMessage());
        } catch (IOException e) {
            throw new UsageException("--config: '" + config.get() + "': " + e.getMessage());
        }
    }

    private Map<String, Path> checkedFiles() throws UsageException {
        if (!files.isEmpty() && config.isEmpty()) {
            throw new UsageException("--config: missing (expected: --config=FILE|JSON, required by --file)");
        }
        for (Path path : files.values()) {
            file("--file", path.toString());
        }
        return files;
    }

    /** Returns an existing file; opening a pipe would wait for its writer. */
    private static Path file(String flag, String text) throws UsageException {
        return FlagValue.FILE
                .reader()
                .apply(text)
                .filter(Files::isRegularFile)
                .orElseThrow(() -> new UsageException(flag + ": '" + text + "' (expected: an existing file)"));
    }

    private static Optional<Map.Entry<String, Path>> replacement(String text) {
        int equal = text.indexOf('=');
        if (equal < 1 || equal == text.length() - 1) {
            return Optional.empty();
        }
        try {
            return Optional.of(Map.entry(text.substring(0, equal), Path.of(text.substring(equal + 1))));
        } catch (InvalidPathException e) {
            return Optional.empty();
        }
    }
}
