package dev.nereid.backend.python.environment;

import dev.nereid.spi.BackendContext;
import dev.nereid.spi.ModelContext;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** Settings of the frame OPEN that all instances share, one for each load. Immutable. */
public record OpenSettings(Map<String, String> values) {
    public OpenSettings {
        values = Map.copyOf(values);
    }

    /** Collects the settings of a model. Makes the directory of its byte code in the backend's cache directory. */
    public static OpenSettings of(
            BackendContext backend,
            ModelContext model,
            ModelFile file,
            PythonSettings settings,
            PythonParameters parameters) {
        Map<String, String> values = new LinkedHashMap<>();
        values.put("model_file", file.file().toString());
        values.put(
                "version_directory", model.versionDirectory().toAbsolutePath().toString());
        values.put("model_name", model.settings().name());
        values.put("model_version", Long.toString(model.settings().version()));
        values.put("module_name", file.moduleName());
        values.put("search_path", file.searchPath().stream().map(Path::toString).collect(Collectors.joining("\n")));
        values.put("inline_limit", Integer.toString(settings.inlineLimit()));
        ByteCodeCache byteCode = new ByteCodeCache(backend.cacheDirectory().toAbsolutePath());
        values.put(
                "pycache_prefix", byteCode.prefix(file.searchPath().getLast()).toString());
        ProcessLimits limits = parameters.limits();
        limits.memory().ifPresent(bytes -> values.put("limit_memory", Long.toString(bytes)));
        limits.processorSeconds().ifPresent(time -> values.put("limit_processor_seconds", Long.toString(time)));
        limits.openFiles().ifPresent(files -> values.put("limit_open_files", Long.toString(files)));
        parameters.debugPort().ifPresent(port -> values.put("debug_port", Integer.toString(port)));
        return new OpenSettings(values);
    }

    /**
     * Returns the settings of one process.
     *
     * @param instance the name of its instance; empty if it has none yet
     * @param logLevels the bits of the log levels that are written
     */
    public Map<String, String> forProcess(String instance, int logLevels) {
        Map<String, String> all = new LinkedHashMap<>(values);
        all.put("instance_name", instance);
        all.put("log_levels", Integer.toString(logLevels));
        return all;
    }
}
